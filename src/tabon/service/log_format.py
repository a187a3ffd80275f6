"""Log lines for people and for machines; neither holds report text."""

import json
import logging
from datetime import UTC, datetime

from tabon.service.guard import request_id

TEXT = logging.Formatter("%(asctime)s %(levelname)s %(name)s %(message)s")


class JsonFormatter(logging.Formatter):
    """One JSON object a line: time, level, logger, message, and the request's id where there is one."""

    def format(self, record: logging.LogRecord) -> str:
        """Write a record; of an exception only its kind, since its message may hold text."""
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if found := request_id.get():
            line["request"] = found
        if record.exc_info and record.exc_info[0]:
            line["exception"] = record.exc_info[0].__name__
        return json.dumps(line)


FORMATS = {"text": TEXT, "json": JsonFormatter()}
