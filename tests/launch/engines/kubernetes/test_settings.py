"""Flags of the engine: what is refused before any cluster is asked."""

import pytest


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ([], "--engine kubernetes needs --image"),
        (["--image", "a b"], "image=a b is no name of an image"),
        (["--image", "x\n"], "image=x? holds a character that cannot be seen"),
        (["--namespace", "My_Lab"], "namespace=My_Lab is no name of a namespace"),
        (["--storage", "20 GB"], "storage=20 GB is no quantity such as 20Gi"),
        (["--learner-mem", "0x"], "learner_mem=0x is no quantity"),
        (["--storage-class", "A"], "storage_class=A is no name"),
        (["--queue", "a/b"], "queue=a/b is no name"),
        (["--learner-resources", "gpu"], "learner_resources=gpu: 'gpu' is not key=value"),
        (["--learner-resources", "nvidia.com/gpu=0"], "nvidia.com/gpu=0 is no number of devices"),
        (["--actor-node-selector", "spot"], "actor_node_selector=spot: 'spot' is not key=value"),
        (["--actor-tolerations", "spot"], "actor_tolerations=spot: 'spot' is not key=value:Effect"),
        (["--actor-tolerations", "spot:Never"], "'spot:Never' is not key=value:Effect"),
        (["--actor-hosts", "501"], "actor_hosts=501: the keys of 500 hosts at most fit"),
        (["--context", "a\nb"], "context=a?b holds a character"),
        (["--drain-seconds", "0"], "drain_seconds=0 must be at least 1"),
        (["--learner-gres", "gpu:1"], "--learner-gres needs --engine slurm, not kubernetes"),
        (["--actors", "3"], "--actors is for one machine; with --engine kubernetes give"),
        (["--serial"], "drop --engine"),
    ],
)
def test_bad_flags_are_refused_in_one_line(refuse, kubectl, tmp_path, monkeypatch, flags, said):
    monkeypatch.chdir(tmp_path)
    image = ["--image", "vantage:1"] if flags and "--image" not in flags else []
    assert said in refuse("train", "--engine", "kubernetes", *image, *flags)
    assert not kubectl.calls and not (tmp_path / "runs").exists()


def test_flags_of_a_cluster_are_refused_elsewhere(refuse):
    assert "--image needs --engine kubernetes, not local" in refuse("train", "--image", "x")
    flags = ("--engine", "hosts", "--learner-cpus", "3")
    assert "--learner-cpus needs --engine slurm or kubernetes" in refuse("train", *flags)
