"""The explorer as a service, and the studies that its browser tests look at."""

from explorer_cases import bank, odd, queries, simulated
from service_server import query_service
from tabon.selectors.setup import SelectionSettings
from tabon.service import guarded_app
from tabon.service.explorer.films import ImageFolder
from tabon.service.explorer.scores import score_named
from tabon.service.explorer.studies import ExplorerSettings, explorer_of
from tabon.service.explorer_routes import explorer_module
from tabon.service.guard import guard_settings

SETTINGS = SelectionSettings(encoder="hashing", aggregate="knn", neighbours=5, abstain=0.02)
BESIDE = "consensus"


def studies_in(folder):
    """Return simulated studies with a score, and odd ones; the first two have images of this folder."""
    films = {"image": "one.png", "prior_image": "one.png"}
    records = [{**record, **films} if n < 2 else record for n, record in enumerate(simulated())]
    shown = ExplorerSettings(title="Cohort", score=score_named("rouge-l-f"), images=ImageFolder(folder))
    return explorer_of(bank(), SETTINGS, queries([*records, *odd()]), shown, beside=BESIDE)


def app_of(studies, token=None):
    """Return the service with the explorer."""
    guard = guard_settings("127.0.0.1", token=token, allowed=(), body=100_000)
    return guarded_app(query_service(of=bank()), guard, [explorer_module(studies)])
