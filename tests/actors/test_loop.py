"""The actor's loop on real games, with lambdas for its edges and a clock of our own."""

import itertools
from collections import Counter
from collections.abc import Iterator
from typing import Any, Literal, NamedTuple

import dm_env
import numpy as np
import pytest

from actors.environment import FIRST, LAST, AtariBatch
from actors.exploration import EpsilonFn, LadderEpsilon, LinearEpsilon
from actors.loop import ActingParams, Actor, ActorEdges, run_actor
from actors.n_step import Increment, Row
from actors.observation import STACK_SIZE
from tests.actors.atari import atari

N_STEP, GAMMA = 3, 0.99


class RecordedBatch(AtariBatch):
    """A real batch that remembers what it was asked and what it showed."""

    def __init__(self, *args: Any, **kwargs: Any):
        super().__init__(*args, **kwargs)
        self.shown: list[dm_env.TimeStep] = []
        self.actions: list[np.ndarray] = []
        self.playing = False

    def reset(self) -> dm_env.TimeStep:
        self.shown.append(super().reset())
        return self.shown[-1]

    def send(self, actions: np.ndarray) -> None:
        self.actions.append(actions)
        self.playing = True
        super().send(actions)

    def recv(self) -> dm_env.TimeStep:
        self.shown.append(super().recv())
        self.playing = False
        return self.shown[-1]


class Write(NamedTuple):
    """One call of the edge."""

    game: int
    increment: Increment


class Played(NamedTuple):
    """What an actor did and wrote."""

    environment: RecordedBatch
    writes: list[Write]
    reports: list[dict[str, Any]]
    frames_played: int

    def expected_writes(self) -> Iterator[tuple[int, bool]]:
        """The game of each write, and whether it is the final frame of a truncated episode."""
        for timestep in self.environment.shown[1:]:
            for game, step_type in enumerate(timestep.step_type):
                yield from [(game, False)] * bool(step_type != FIRST)
                truncated = step_type == LAST and timestep.discount[game] > 0
                yield from [(game, True)] * bool(truncated)

    def increments(self, game: int, *, ends: bool) -> list[Increment]:
        """What the played steps of a game added, or the ends of its episodes."""
        return [
            write.increment
            for write, expected in zip(self.writes, self.expected_writes(), strict=True)
            if expected == (game, ends)
        ]

    def rows(self, game: int) -> list[Row]:
        """The stream of a game."""
        return [row for write in self.writes if write.game == game for row in write.increment.rows]


def stack_at(rows: list[Row], i: int) -> np.ndarray:
    """The stack at a row, rebuilt from the stream."""
    ages = range(STACK_SIZE - 1, -1, -1)
    black = np.zeros_like(rows[i].frame)
    return np.array([rows[i - back].frame if back <= rows[i].age else black for back in ages])


def make_edges(environment: AtariBatch, **edges: Any) -> ActorEdges:
    """The greedy action is the newest frame's sum modulo the number of actions."""
    defaults: dict[str, Any] = {
        "get_params": lambda: ActingParams(None, version=7, frames=500, age_seconds=1.5),
        "greedy_actions": lambda params, stacks: (
            stacks[:, -1].sum(axis=(1, 2)) % environment.num_actions
        ).astype(np.int32),
        "write": lambda game, increment: None,
        "waited_seconds": lambda: 0.0,
        "report": lambda metrics: None,
        "should_stop": lambda: False,
    }
    return ActorEdges(**{**defaults, **edges})


def make_actor(
    environment: AtariBatch,
    edges: ActorEdges,
    *,
    epsilon_fn: EpsilonFn = lambda frames: 0.7,
    rng_seed: int = 0,
    pipeline_depth: Literal[0, 1] = 1,
) -> Actor:
    return Actor(
        environment,
        edges,
        epsilon_fn=epsilon_fn,
        n_step=N_STEP,
        item_transitions=2,
        gamma=GAMMA,
        rng=np.random.default_rng(rng_seed),
        pipeline_depth=pipeline_depth,
    )


def play(
    game: str,
    num_steps: int,
    *,
    num_envs: int = 2,
    seed: int = 3,
    rng_seed: int = 0,
    **options: Any,
) -> Played:
    epsilon_fn = options.pop("epsilon_fn", lambda frames: 0.7)
    environment = atari(game, RecordedBatch, num_envs=num_envs, seed=seed, **options)
    writes: list[Write] = []
    reports: list[dict[str, Any]] = []
    edges = make_edges(
        environment, write=lambda *write: writes.append(Write(*write)), report=reports.append
    )
    actor = make_actor(environment, edges, epsilon_fn=epsilon_fn, rng_seed=rng_seed)
    for _ in range(num_steps):
        actor.step()
    actor.flush()
    environment.close()
    return Played(environment, writes, reports, actor.frames_played)


@pytest.fixture(scope="module")
def breakout() -> Played:
    """Whole games: lost lives and terminations."""
    return play("breakout", 420)


@pytest.fixture(scope="module")
def ms_pacman() -> Played:
    """Truncated episodes of 90 steps, with scores above one."""
    return play("ms_pacman", 200, max_episode_frames=360)


def played_steps(played: Played, stream: int) -> list[int]:
    """Numbers of the steps that were not a restart; step t leads to time step t + 1."""
    step_types = [timestep.step_type[stream] for timestep in played.environment.shown[1:]]
    return [t for t, step_type in enumerate(step_types) if step_type != FIRST]


class TestWhatIsWritten:
    def test_each_played_step_is_one_write_in_order_of_games(self, breakout: Played) -> None:
        expected = list(breakout.expected_writes())
        assert [write.game for write in breakout.writes] == [game for game, _ in expected]

    @pytest.mark.parametrize("game", [0, 1])
    def test_a_truncated_episode_ends_with_its_final_frame(
        self, ms_pacman: Played, game: int
    ) -> None:
        shown = ms_pacman.environment.shown
        final = [s.observation.stack[game, -1] for s in shown if s.step_type[game] == LAST]
        ends = ms_pacman.increments(game, ends=True)
        assert final
        for frame, increment in zip(final, ends, strict=True):
            [row] = increment.rows
            np.testing.assert_array_equal(row.frame, frame)
            assert (row.final, row.reward, row.discount) == (1, 0.0, 1.0)

    @pytest.mark.parametrize("stream", [0, 1])
    def test_rows_tell_what_was_seen_done_and_received(self, breakout: Played, stream: int) -> None:
        rows = [increment.rows[-1] for increment in breakout.increments(stream, ends=False)]
        steps = played_steps(breakout, stream)
        assert len(rows) == len(steps)
        shown, actions = breakout.environment.shown, breakout.environment.actions
        for row, t in zip(rows, steps, strict=True):
            seen = shown[t].observation.stack[stream]
            np.testing.assert_array_equal(row.frame, seen[-1])
            assert row.action == actions[t][stream]
            assert row.greedy == seen[-1].sum() % 4
            assert row.reward == shown[t + 1].reward[stream]
            assert row.discount == (GAMMA if shown[t + 1].discount[stream] else 0.0)
            assert row.epsilon == 0.7

    def test_rows_are_python_numbers(self, breakout: Played) -> None:
        row = breakout.writes[0].increment.rows[-1]
        assert [type(value) for value in row[1:]] == [int, float, float, float, int, int, int]

    def test_lost_lives_and_the_end_of_the_game_are_rows_without_discount(
        self, breakout: Played
    ) -> None:
        rows = breakout.rows(0)[STACK_SIZE - 1 :]
        first = next(i for i, row in enumerate(rows) if i and row.age == 0)
        assert sum(row.discount == 0.0 for row in rows[:first]) == 5
        assert rows[first - 1].discount == 0.0
        assert not any(row.final for row in rows)

    @pytest.mark.parametrize("stream", [0, 1])
    @pytest.mark.parametrize("game", ["breakout", "ms_pacman"])
    def test_stacks_rebuilt_from_rows_are_those_the_environment_showed(
        self, game: str, stream: int, request: pytest.FixtureRequest
    ) -> None:
        played: Played = request.getfixturevalue(game)
        rows = played.rows(stream)
        row = STACK_SIZE - 1
        shown = played.environment.shown
        for now, after in itertools.pairwise(shown):
            if after.step_type[stream] != FIRST:
                stack = now.observation.stack[stream]
            elif now.discount[stream] > 0:
                stack = now.observation.stack[stream]  # the final frame of a truncated episode
                assert rows[row].final
            else:
                continue
            np.testing.assert_array_equal(stack_at(rows, row), stack)
            row += 1
        assert row >= len(rows) - 1

    def test_each_game_has_its_own_epsilon_on_the_ladder(self) -> None:
        ladder = LadderEpsilon(actor=1, num_actors=2, envs_per_actor=2)
        played = play("pong", 4, epsilon_fn=ladder)
        for write in played.writes:
            assert write.increment.rows[-1].epsilon == ladder(0)[write.game]


class TestEpisodeReports:
    def test_they_have_the_true_score_and_the_frames(self, ms_pacman: Played) -> None:
        shown = ms_pacman.environment.shown
        scores = np.array([timestep.observation.score for timestep in shown])
        expected = [
            {
                "frames": 500,
                "episode_return": float(scores[first : first + 91, stream].sum()),
                "episode_frames": 360,
            }
            for first in (0, 91)
            for stream in (0, 1)
        ]
        assert ms_pacman.reports == expected
        rewards = np.array([timestep.reward for timestep in shown])
        assert (scores[:91].sum(axis=0) > rewards[:91].sum(axis=0)).all()

    def test_an_episode_goes_on_over_lost_lives(self, breakout: Played) -> None:
        expected = []
        for stream in (0, 1):
            rows = breakout.rows(stream)[STACK_SIZE - 1 :]
            starts = [i for i, row in enumerate(rows) if row.age == 0]
            expected += [4 * (end - start) for start, end in itertools.pairwise(starts)]
        assert expected
        found = sorted(report["episode_frames"] for report in breakout.reports)
        # An episode that ends with the last step is not followed by a start.
        assert not Counter(expected) - Counter(found)
        assert len(found) - len(expected) <= 2

    def test_frames_played_count_steps_but_not_restarts(self, breakout: Played) -> None:
        steps = len(played_steps(breakout, 0)) + len(played_steps(breakout, 1))
        assert steps < 2 * 420
        assert breakout.frames_played == 4 * steps


class TestActing:
    def test_it_acts_with_the_newest_parameters_and_the_epsilon_of_their_frames(self) -> None:
        versions = itertools.count()
        used: list[Any] = []
        asked: list[int] = []
        environment = atari("pong", num_envs=1, seed=1)

        def get_params() -> ActingParams:
            version = next(versions)
            return ActingParams(f"params {version}", version, 1000 * version, 0.0)

        def greedy_actions(params: Any, stacks: np.ndarray) -> np.ndarray:
            used.append(params)
            return np.zeros(len(stacks), np.int32)

        def epsilon_fn(frames: int) -> float:
            asked.append(frames)
            return 0.0

        edges = make_edges(environment, get_params=get_params, greedy_actions=greedy_actions)
        actor = make_actor(environment, edges, epsilon_fn=epsilon_fn)
        acted_with = [actor.step().version for _ in range(3)]
        environment.close()
        assert acted_with == [0, 1, 2]
        assert used == ["params 0", "params 1", "params 2"]
        assert asked == [0, 1000, 2000]

    def test_a_step_is_written_while_the_games_play_the_next_one(self) -> None:
        environment = atari("pong", RecordedBatch, num_envs=1, seed=1)
        written: list[tuple[int, bool]] = []

        def write(game: int, increment: Increment) -> None:
            written.append((increment.rows[-1].action, environment.playing))

        actor = make_actor(environment, make_edges(environment, write=write))
        for steps in range(5):
            assert len(written) == max(steps - 1, 0)
            actor.step()
        for _ in range(2):
            actor.flush()
        environment.close()
        played = [int(actions[0]) for actions in environment.actions]
        assert written == [(action, True) for action in played[:-1]] + [(played[-1], False)]

    def test_without_a_pipeline_a_step_is_written_before_the_next_one_is_played(self) -> None:
        environment = atari("pong", RecordedBatch, num_envs=1, seed=1)
        written: list[tuple[int, bool]] = []

        def write(game: int, increment: Increment) -> None:
            written.append((increment.rows[-1].action, environment.playing))

        actor = make_actor(environment, make_edges(environment, write=write), pipeline_depth=0)
        for steps in range(1, 6):
            actor.step()
            assert len(written) == steps
        actor.flush()
        environment.close()
        assert written == [(int(actions[0]), False) for actions in environment.actions]

    def test_the_same_seeds_write_the_same_and_another_does_not(self) -> None:
        one, same, other = (
            play("pong", 30, num_envs=1, rng_seed=rng_seed, max_episode_frames=60)
            for rng_seed in (0, 0, 1)
        )
        assert self.flat(one) == self.flat(same)
        assert self.flat(one) != self.flat(other)

    def flat(self, played: Played) -> list[Any]:
        return [
            (game, items, [(row.frame.tobytes(), *row[1:]) for row in rows])
            for game, (rows, items) in played.writes
        ]


class Run(NamedTuple):
    """What `run_actor` reported, and how often it acted and wrote, in each of its two games."""

    reports: list[dict[str, Any]]
    steps: int
    writes: int


def run(*, num_steps: int, report_seconds: float, epsilon_fn: EpsilonFn) -> Run:
    """Every look at the clock is a second later; writes wait a quarter of the time."""
    environment = atari("pong", RecordedBatch, num_envs=2, seed=1)
    clock = itertools.count(100.0, 1.0)
    waited = itertools.count(50.0, 0.25 * report_seconds)
    stops = iter([False] * num_steps + [True])
    reports: list[dict[str, Any]] = []
    writes: list[int] = []
    edges = make_edges(
        environment,
        write=lambda game, increment: writes.append(game),
        report=reports.append,
        waited_seconds=lambda: next(waited),
        should_stop=lambda: next(stops),
    )
    actor = make_actor(environment, edges, epsilon_fn=epsilon_fn)
    run_actor(actor, edges, report_seconds=report_seconds, clock=lambda: next(clock))
    environment.close()
    assert writes.count(0) == writes.count(1)
    return Run(reports, len(environment.actions), writes.count(0))


class TestRunActor:
    def test_it_reports_rates_once_per_period(self) -> None:
        result = run(num_steps=9, report_seconds=4.0, epsilon_fn=LinearEpsilon(0.0, 1000))
        # Two games, four frames each, one step per second.
        assert (
            result.reports
            == [
                {
                    "frames": 500,
                    "frames_per_second": 8.0,
                    "params_age_seconds": 1.5,
                    "params_version": 7,
                    "insert_wait_fraction": 0.25,
                    "epsilon": 0.5,
                }
            ]
            * 2
        )

    def test_it_reports_the_mean_epsilon_of_its_games(self) -> None:
        ladder = LadderEpsilon(actor=0, num_actors=1, envs_per_actor=2)
        result = run(num_steps=1, report_seconds=1.0, epsilon_fn=ladder)
        assert result.reports[0]["epsilon"] == pytest.approx((0.4 + 0.4**8) / 2)
        assert type(result.reports[0]["epsilon"]) is float

    @pytest.mark.parametrize("num_steps", [0, 3])
    def test_it_stops_when_told_with_every_step_written(self, num_steps: int) -> None:
        result = run(num_steps=num_steps, report_seconds=1e9, epsilon_fn=lambda frames: 0.0)
        assert result == Run(reports=[], steps=num_steps, writes=num_steps)
