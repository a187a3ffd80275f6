"""A model that is an external command."""

ECHO = """
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    text = f"Findings: Clear, {asked['seed']}.\\nImpression: Normal."
    print(json.dumps({"id": asked["id"], "text": text, "finish_reason": "stop"}), flush=True)
"""
