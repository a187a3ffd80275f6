"""The explorer's data, made by hand: three studies with everything that a page can show."""

PRIOR = {
    "findings": ["The heart is normal in size.", "No effusion.", "A nodule of 6 mm is seen."],
    "impression": ["Small nodule."],
    "other": "HISTORY: cough.",
    "marks": {"findings": [[], [], [["number", 12, 16]]], "impression": [[["severity", 0, 5]]]},
    "written": {"findings": "The heart is normal in size.\nNo effusion.\nA nodule of 6 mm is seen."},
}
DRAFTS = (
    {
        "findings": ["The heart is normal in size.", "There is no effusion.", "The nodule is unchanged."],
        "impression": ["Stable nodule."],
        "other": "",
        "marks": {"findings": [[], [], [["change", 14, 23]]], "impression": [[["change", 0, 6]]]},
        "written": {},
    },
    {
        "findings": ["New edema.", "No effusion."],
        "impression": ["Edema.", "Nodule."],
        "other": "Here it is:",
        "marks": {"findings": [[["change", 0, 3]], []], "impression": [[], []]},
        "written": {},
    },
    {"findings": ["Normal."], "impression": [], "other": "", "marks": {}, "written": {}},
)
ALIGNED = (
    (("same", 0, 0), ("reworded", 1, 1), ("new", None, 2), ("dropped", 2, None)),
    (("new", None, 0), ("same", 1, 1), ("dropped", 0, None), ("dropped", 2, None)),
    (("new", None, 0), ("dropped", 0, None), ("dropped", 1, None), ("dropped", 2, None)),
)
NEAREST = {
    "id": "train-7",
    "distance": 0.125,
    "prior_distance": 0.0625,
    "prior": ["Clear lungs."],
    "current": ["Lungs remain clear."],
}
NO_REPORT = {"findings": [], "impression": [], "other": "", "marks": {}, "written": {}}


def flag(kind, **facts):
    """Return a flag."""
    none = {
        "section": None,
        "sentences": [],
        "prior_section": None,
        "prior_sentences": [],
        "observation": None,
    }
    return {"kind": kind, "detail": f"about {kind}", **none, **facts}


FLAGS = (
    [],
    [
        flag("unsupported-finding", section="findings", sentences=[0], observation="edema"),
        flag("dropped-finding", prior_section="findings", prior_sentences=[2], observation="nodule"),
        flag("chatty-draft", section="other", sentences=[0]),
    ],
    [flag("empty-draft")],
)


def line(kind, prior, current):
    """Return a line of an alignment."""
    facts = {"distance": 0.2, "share": 0.25, "turned": []}
    if kind == "reworded":
        words = {"lost": [[0, 2]], "added": [[0, 8]], "turns": [["side", ["left"], []]]}
        facts |= {"turned": ["Effusion"], **words}
    return {"kind": kind, "prior": prior, "current": current, **facts}


def draft(number):
    """Return one draft with its measures."""
    sections = {"findings": 0.2 + number / 10, "impression": None if number == 2 else 0.1}
    return {
        "number": number,
        "rank": number,
        "total": 0.3 + number / 10,
        "sections": sections,
        "lacks": ["impression"] if number == 2 else [],
        "parts": {"findings": {"novelty": 0.1, "cost-ot": None if number else 0.3}},
        "verdict": f"draft 0 of 3 was chosen over draft {number or 1} because of a made-up reason",
        "against": number or 1,
        "decision": [
            {"section": "findings", "part": "novelty", "adds": 0.125, "share": 1.25},
            {"section": "impression", "part": "cost-ot", "adds": -0.025, "share": None if number else -0.25},
        ],
        "evidence": {"findings": ["No other draft says this."], "impression": []},
        "report": DRAFTS[number],
        "score": (0.5, 0.25, 0.0)[number],
        "beside_total": 0.9 - number / 10,
        "beside_reference": {"findings": [line(*one) for one in ALIGNED[number]]},
        "flags": FLAGS[number],
        "alignment": {"findings": [line(*one) for one in ALIGNED[number]]},
        "nearest": {"findings": [NEAREST], "impression": [{**NEAREST, "prior": [], "current": []}]},
    }


REFERENCE = {
    **DRAFTS[0],
    "other": "TECHNIQUE: two views.",
    "alignment": {"findings": [line(*one) for one in ALIGNED[0]]},
}


def choice(number):
    """Return what a selector chose: a draft with its score."""
    score = (0.5, 0.25, 0.0)[number]
    facts = {"margin": 0.1, "tied": False, "abstained": None}
    return {"selected": number, **facts, "score": score, "gain": score - 0.25}


def study(number, **facts):
    """Return one study; facts replace what it holds."""
    places = {"drafts": [[0.1, 0.2], [0.1, 0.2], None], "nearest": [[0.3, 0.1], [-0.5, 0.5], None]}
    return {
        "number": number,
        "id": f"study-{number}",
        "patient": f"patient-{number}",
        **choice(0),
        "margin": 0.1,
        "p": 0.4,
        "best": 0.5,
        "beside": choice(1),
        "why": "draft 1 of 3 was chosen because of a made-up reason",
        "beside_why": "draft 2 of 3 was chosen because of another made-up reason",
        "prior": PRIOR,
        "notes": ["no change of the findings in draft 2"],
        "older_priors": 2,
        "reference": REFERENCE,
        "drafts": [draft(one) for one in range(3)],
        "map": {"findings": places, "impression": {"drafts": [None] * 3, "nearest": [None] * 3}},
        "has_image": False,
        "films": None,
        **facts,
    }


def row(one):
    """Return what the list shows of a study."""
    keys = ("number", "id", "patient", *choice(0), "p", "best", "beside", "has_image")
    flags = (
        []
        if one["selected"] is None
        else [found["kind"] for found in one["drafts"][one["selected"]]["flags"]]
    )
    facts = {"drafts": len(one["drafts"]), "flags": flags, "preview": "The first words of the pick."}
    return {**{key: one[key] for key in keys}, **facts}


def sample():
    """Return overview and studies: a plain one, one whose pick has flags, one without pick and prior."""
    none = {**dict.fromkeys(choice(0)), "tied": False, "abstained": "empty-prior"}
    unpicked = {**none, **dict.fromkeys(("p", "best", "why", "beside_why")), "beside": none}
    studies = [
        study(0),
        study(1, **{**choice(1), "tied": True, "margin": 0.0, "gain": -0.1, "beside": choice(0)}),
        study(2, prior=NO_REPORT, reference=None, patient=None, map={}, **unpicked),
    ]
    for one in studies[2]["drafts"]:
        one["beside_reference"] = None
    points = {
        "bank": [[x / 10, (x * 7 % 11) / 10] for x in range(-10, 11)],
        "explained": [0.5, 0.25],
        "total": 90,
    }
    overview = {
        "notice": "Research use only. Not a medical device.",
        "title": "By hand",
        "signature": "distance:novelty|bank:0123",
        "selector": "fused",
        "beside": {"selector": "consensus:chamfer", "signature": "selector:consensus:chamfer|bank:0123"},
        "bank": {"transitions": 90, "patients": 40, "sha256": "01" * 32},
        "score": "rouge-l-f",
        "flag_kinds": ["unsupported-finding", "dropped-finding", "chatty-draft", "empty-draft"],
        "map": {"findings": points, "impression": points},
        "studies": [row(one) for one in studies],
        "cited": "Nearest changes in training reports",
        "parts_add_up": True,
    }
    return {"overview": overview, "studies": studies}
