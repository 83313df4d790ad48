"""What the objects of a run are called, and where things are in its pods."""

import os

from launch.engines.record import EngineRecord

RUN_DIR = "/vantage/run"
VOLUME = "/vantage"
CONFIG_FOLDER, KEYS_FOLDER = "/etc/vantage/run", "/etc/vantage/keys"
CONFIG_FILE = "config.json"
CONTAINER = "host"
IN_POD = "VANTAGE_POD"  # set in the environment of pods
GATE_PORT = 7777  # unless --port says otherwise
INSTANCE, COMPONENT = "app.kubernetes.io/instance", "app.kubernetes.io/component"
INDEX = "batch.kubernetes.io/job-completion-index"


def in_its_pod() -> bool:
    """Whether this process is in a pod of a run: then the run directory is here."""
    return IN_POD in os.environ


def new_name(run_id: str) -> str:
    """The name of a run in a cluster, which it keeps when it is resumed."""
    return f"vantage-{run_id}"


def base(record: EngineRecord) -> str:
    """What the names of all its objects begin with."""
    return record.cluster_name or new_name(record.run_id)


def learner(record: EngineRecord) -> str:
    """The learner's Job, its Service and so the name by which actors find the gate."""
    return f"{base(record)}-learner"


def actor(record: EngineRecord) -> str:
    """The actors' Job."""
    return f"{base(record)}-actor"


def labels(record: EngineRecord, component: str | None = None) -> dict[str, str]:
    """Labels of an object, or of all that belong to the run."""
    found = {"app.kubernetes.io/name": "vantage", INSTANCE: base(record)}
    return found if component is None else {**found, COMPONENT: component}


def selector(record: EngineRecord, component: str | None = None) -> str:
    """The same as kubectl takes it."""
    return ",".join(f"{key}={value}" for key, value in labels(record, component).items())
