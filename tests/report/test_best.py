"""Which methods are called statistically best: by the paper's rule, and by bootstrap intervals."""

import numpy as np
import pytest

from report.paper_table import Score, paper_algorithms, paper_scores, statistically_best

# What the paper's Table 1 prints in bold.
PAPERS_BOLD = {
    "amidar": {"va", "dueling"},
    "assault": {"va", "behavior_dueling"},
    "boxing": {"behavior_dueling"},
    "breakout": {"dueling", "q"},
    "crazy_climber": {"q"},
    "krull": {"behavior_dueling"},
    "pong": {"dueling", "q"},
    "road_runner": {"va", "behavior_dueling"},
    "space_invaders": {"va", "dueling", "q"},
    "pitfall": {"va", "behavior_dueling", "dueling", "q"},
}


@pytest.mark.parametrize("game", PAPERS_BOLD)
def test_the_papers_own_scores_give_the_papers_own_bold(game):
    algorithms = paper_algorithms()
    best = statistically_best([paper_scores()[game, algorithm] for algorithm in algorithms])
    chosen = {name for name, is_best in zip(algorithms, best, strict=True) if is_best}
    assert chosen == PAPERS_BOLD[game]


@pytest.mark.parametrize(
    ("scores", "best"),
    [
        ([Score(1.0, 0.1), Score(0.5, 0.4), Score(0.4, 0.1)], [True, True, False]),
        ([Score(-3.0, 0.0), Score(-3.0, 0.0)], [True, True]),
        ([Score(1.0, 0.1), Score(0.5, None)], [False, False]),  # one run has no interval
        ([Score(1.0, 0.1)], [False]),  # nothing to be better than
        ([], []),
    ],
)
def test_overlapping_intervals_share_it(scores, best):
    assert statistically_best(scores) == best


def test_aggregates_are_best_by_their_intervals_and_a_smaller_gap_is_better():
    pytest.importorskip("rliable", reason="rliable is in the full environment only")
    from report.aggregates import Estimate, best_of

    def estimate(value, low, high):
        return Estimate(*(np.full(4, number) for number in (value, low, high)))

    apart = {"va": estimate(0.9, 0.8, 1.0), "q": estimate(0.5, 0.4, 0.6)}
    assert best_of(apart, 1) == {"va"} and best_of(apart, 3) == {"q"}
    close = {"va": estimate(0.9, 0.5, 1.0), "q": estimate(0.5, 0.4, 0.6)}
    assert best_of(close, 1) == {"va", "q"} == best_of(close, 3)
    single = {"va": estimate(0.9, np.nan, np.nan), "q": estimate(0.5, np.nan, np.nan)}
    assert best_of(single, 1) == set()
