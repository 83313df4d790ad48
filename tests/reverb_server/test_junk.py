"""What strangers may send to the port: nothing of it stops a server, an actor or a learner."""

import contextlib
import socket
import threading

import numpy as np
import pytest
import reverb

from actors.n_step import NStepStream, Row
from actors.observation import FRAME_SHAPE, STACK_SIZE
from reverb_server import careful_draw, range_check, sampler, tables
from reverb_server.careful_draw import CarefulDraw
from reverb_server.client import read_counts
from reverb_server.foreign_samples import ForeignSamples
from reverb_server.priorities import update_priorities
from reverb_server.rate_limit import RateLimit
from reverb_server.writer import ExperienceWriter
from tests.reverb_server.episodes import NUM_ACTIONS, SINGLE, layout_of

N_STEP = 2
ROWS = layout_of(N_STEP).rows
GOOD = tables.Step(action=1, reward=0.5, discount=0.99, epsilon=0.1, greedy=2, age=3, final=0)
FRAMES = np.zeros((ROWS, *FRAME_SHAPE), np.uint8)
HALF_OPEN = 300
HTTP = b"POST /reverb HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello"
NOISE = np.random.default_rng(0).integers(256, size=100_000).astype(np.uint8).tobytes()


def write_episode(client, rows=30):
    row = Row(FRAMES[0], **GOOD._asdict())
    stream = NStepStream(N_STEP, 1)
    with ExperienceWriter(
        client,
        layout_of(N_STEP),
        num_streams=1,
        should_stop=lambda: False,
        timeout_seconds=20.0,
    ) as writer:
        for _ in range(rows):
            writer.write(0, *stream.step(row))


def make_source(server, prioritization=None):
    return sampler.BatchSampler(
        f"localhost:{server.port}",
        layout_of(N_STEP),
        batch_size=8,
        prioritization=prioritization,
        num_actions=NUM_ACTIONS,
    )


def next_batch(source):
    for _ in range(20):
        batch = source()
        if batch is not None:
            return batch
    raise AssertionError("no batch came")


@pytest.mark.parametrize("junk", [HTTP, NOISE, b"\0" * 1000, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"])
def test_bytes_that_are_no_grpc_leave_the_server_working(make_server, connect, junk):
    server = make_server(n_step=N_STEP)
    for _ in range(5):
        # The server may well hang up before all is sent.
        with (
            socket.create_connection(("127.0.0.1", server.port), 10) as stranger,
            contextlib.suppress(OSError),
        ):
            stranger.sendall(junk)
    write_episode(connect(server))
    assert next_batch(make_source(server)).steps.reward.shape == (8, ROWS)


def test_many_connections_that_say_nothing_leave_the_server_working(make_server, connect):
    server = make_server(n_step=N_STEP)
    with contextlib.ExitStack() as held:
        for _ in range(HALF_OPEN):
            held.enter_context(socket.create_connection(("127.0.0.1", server.port), 10))
        write_episode(connect(server))
        assert next_batch(make_source(server)).steps.reward.shape == (8, ROWS)


def test_items_of_another_signature_are_refused_and_cost_nothing(make_server, connect):
    server = make_server(n_step=N_STEP)
    client = connect(server)
    for table in (tables.REPLAY, tables.PARAMS, tables.TELEMETRY):
        with contextlib.suppress(ValueError, RuntimeError, reverb.ReverbError):
            client.insert([np.zeros(3, np.float64)], {table: 1.0})
    write_episode(client)
    info = client.server_info(timeout=5)
    assert info[tables.TELEMETRY].current_size == info[tables.PARAMS].current_size == 0
    assert next_batch(make_source(server)).steps.reward.shape == (8, ROWS)


def junk_steps(**fields):
    """Rows an actor could have made, but for some fields."""
    return np.tile(tables.pack_step(GOOD._replace(**fields)), (1, ROWS, 1))


def plausible(steps, num_actions=NUM_ACTIONS):
    return range_check.Ranges(num_actions, STACK_SIZE).plausible(steps)


@pytest.mark.parametrize(
    "fields",
    [
        {"action": 18},
        {"action": -1},
        {"action": 0.5},
        {"greedy": 1e9},
        {"reward": 1.5},
        {"reward": np.nan},
        {"discount": -0.1},
        {"discount": 2.0},
        {"discount": np.inf},
        {"epsilon": np.nan},
        {"epsilon": 7.0},
        {"age": 4},
        {"age": -1},
        {"age": 1.5},
        {"final": 0.5},
        {"final": 2},
        {"final": np.nan},
    ],
)
def test_values_no_actor_can_have_sent_are_not_plausible(fields):
    assert plausible(junk_steps()).all()
    assert not plausible(junk_steps(**fields)).any()


def test_the_number_of_actions_of_the_game_bounds_them():
    assert not plausible(junk_steps(action=6), 6).any()
    assert plausible(junk_steps(action=5), 6).all()


def insert_junk(client, num_items):
    steps = junk_steps(reward=1e6)[0]
    for _ in range(num_items):
        with client.trajectory_writer(num_keep_alive_refs=1) as writer:
            writer.append(tables.Item(frames=FRAMES, steps=steps)._asdict())
            item = {name: column[-1] for name, column in writer.history.items()}
            writer.create_item(tables.REPLAY, 1.0, item)
            writer.flush(timeout_ms=10_000)


def test_junk_that_fits_the_signature_is_replaced_and_counted(make_server, connect):
    server = make_server(n_step=N_STEP)
    client = connect(server)
    write_episode(client)
    insert_junk(client, 10)
    source = make_source(server)
    for _ in range(20):
        batch = next_batch(source)
        assert (np.abs(batch.steps.reward) <= 1.0).all()
        assert batch.frames.shape == (8, ROWS, *FRAME_SHAPE)
        assert batch.keys.shape == batch.weights.shape == (8,)
    assert source.rejected_items > 0


ITEM = tables.Item(frames=FRAMES, steps=junk_steps()[0])._asdict()
MISFITS = {
    "more rows": {**ITEM, "steps": np.tile(ITEM["steps"], (2, 1))},
    "fewer frames": {**ITEM, "frames": FRAMES[:2]},
    "other type": {**ITEM, "steps": ITEM["steps"].astype(np.float64)},
    "fewer columns": {"frames": FRAMES},
    "more columns": {**ITEM, "more": FRAMES},
}


def insert_unchecked(client, table, item, priority=1.0):
    """As a stranger would: the writer is told not to compare with the table's signature."""
    with client.trajectory_writer(num_keep_alive_refs=1, validate_items=False) as writer:
        writer.append(item)
        writer.create_item(table, priority, {name: c[-1] for name, c in writer.history.items()})
        writer.flush(timeout_ms=20_000)


@pytest.mark.parametrize("misfit", MISFITS)
def test_items_of_another_shape_are_passed_over_counted_and_deleted(make_server, connect, misfit):
    server = make_server(n_step=N_STEP)
    client = connect(server)
    write_episode(client)
    size = client.server_info(timeout=5)[tables.REPLAY].current_size
    for _ in range(5):
        insert_unchecked(client, tables.REPLAY, MISFITS[misfit])
    source = make_source(server)
    batches = [source() for _ in range(200)]
    whole = [batch for batch in batches if batch is not None]
    assert len(whole) > 150  # training goes on
    assert all(batch.frames.shape == (8, ROWS, *FRAME_SHAPE) for batch in whole)
    assert all(batch.keys.dtype == np.uint64 for batch in whole)
    assert source.rejected_items >= 5
    assert client.server_info(timeout=5)[tables.REPLAY].current_size == size


def has_distinct_items_and_finite_weights(batch):
    fine = np.isfinite(batch.weights).all() and (batch.weights > 0.0).all()
    return bool(fine) and batch.weights.max() == 1.0 and len(set(batch.keys.tolist())) > 1


@pytest.mark.parametrize("found_at_once", [True, False])
@pytest.mark.parametrize(
    ("strangers", "alpha"),
    [
        ([np.inf], 0.6),
        ([np.inf] * 2, 0.6),
        ([1.7e308] * 4, 1.0),
        ([1.7e308], 0.5),
        ([0.0] * 3, 0.6),
    ],
)
def test_priorities_no_error_can_have_given_do_not_keep_the_learner_from_replay(
    make_server, connect, strangers, alpha, found_at_once
):
    scheme = tables.Prioritization(alpha=alpha, beta=0.4)
    server = make_server(n_step=N_STEP, prioritization=scheme)
    client = connect(server)
    write_episode(client)
    for priority in strangers:
        insert_unchecked(client, tables.REPLAY, ITEM, priority)
    source = make_source(server, scheme)
    batches = []
    for round_number in range(60):
        if round_number > 0 or not found_at_once:
            write_episode(client, rows=5)
        if (batch := source()) is not None:
            batches.append(batch)
            update_priorities(client, batch.keys, np.linspace(-1.0, 1.0, 8))
    assert all(np.isfinite(batch.weights).all() for batch in batches)
    assert all(has_distinct_items_and_finite_weights(batch) for batch in batches[-10:])
    assert len(batches) > 40
    items = client.sample(tables.REPLAY, 300, emit_timesteps=False)
    assert max(item.info.priority for item in items) <= 2.0


def test_a_priority_set_beyond_reach_on_an_item_of_ours_costs_that_item(make_server, connect):
    scheme = tables.Prioritization(alpha=0.6, beta=0.4)
    server = make_server(n_step=N_STEP, prioritization=scheme)
    client = connect(server)
    write_episode(client)
    source = make_source(server, scheme)
    key = int(next_batch(source).keys[0])
    client.mutate_priorities(tables.REPLAY, updates={key: 1e300})
    for _ in range(40):
        batch = source()
    assert key not in batch.keys and has_distinct_items_and_finite_weights(batch)
    assert source.rejected_items > 0


def test_a_look_at_every_item_is_bounded_and_goes_on_where_it_was_held_back(make_server, connect):
    limit = RateLimit(samples_per_insert=1.0, warmup_steps=20, error_buffer=1e9)
    server = make_server(n_step=N_STEP, rate_limit=limit)
    client = connect(server)
    draw = CarefulDraw(client, layout_of(N_STEP))
    write_episode(client, rows=10)
    assert draw(8, timeout_seconds=0.01) is None
    assert draw(8, timeout_seconds=0.01) is None
    write_episode(client, rows=30)
    drawn = draw(8, timeout_seconds=20.0)
    assert len(drawn.samples) == 8 and drawn.num_deleted == 0
    assert read_counts(client, SINGLE).samples == 8


def wire_that_is_cut(server, after_bytes):
    """The port of a connection to the server that ends once so much was sent, and comes once."""

    def carry():
        near, _ = listener.accept()
        listener.close()
        far = socket.create_connection(("127.0.0.1", server.port), 10)
        threading.Thread(target=answer, args=(near, far), daemon=True).start()
        sent = 0
        while (data := near.recv(1 << 16)) and (sent := sent + len(data)) < after_bytes:
            far.sendall(data)
        for end in (near, far):
            end.shutdown(socket.SHUT_RDWR)

    def answer(near, far):
        while data := far.recv(1 << 16):
            near.sendall(data)

    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=carry, daemon=True).start()
    return listener.getsockname()[1]


def test_junk_whose_deletion_a_server_does_not_live_to_hear_is_met_again(
    make_server, connect, caplog
):
    server = make_server(n_step=N_STEP)
    write_episode(connect(server))
    keys = set(next_batch(make_source(server)).keys.tolist())
    others = range(1 << 40, (1 << 40) + 20_000)  # gone already; enough to be cut in between
    client = reverb.Client(f"localhost:{wire_that_is_cut(server, after_bytes=30_000)}")
    careful_draw.delete(client, {*keys, *others})
    assert "replay went away before it deleted" in caplog.text
    assert any(keys & set(next_batch(make_source(server)).keys.tolist()) for _ in range(20))


def test_junk_that_fits_the_signature_is_deleted_too(make_server, connect):
    server = make_server(n_step=N_STEP)
    client = connect(server)
    write_episode(client)
    size = client.server_info(timeout=5)[tables.REPLAY].current_size
    insert_junk(client, 5)
    source = make_source(server)
    for _ in range(100):
        source()
    assert client.server_info(timeout=5)[tables.REPLAY].current_size == size


def test_no_batch_can_have_been_sampled_that_the_sampler_does_not_account_for(make_server, connect):
    server = make_server(n_step=N_STEP)
    client = connect(server)
    write_episode(client)
    source = make_source(server)
    for _ in range(50):
        next_batch(source)
    assert read_counts(client, SINGLE).samples <= source.max_samples


def test_a_strangers_samples_are_told_from_our_own(make_server, connect):
    server = make_server(n_step=N_STEP)
    client = connect(server)
    write_episode(client)
    source = make_source(server)
    foreign = ForeignSamples(slack=source.stream_items)

    def look():
        return foreign.observe(read_counts(client, SINGLE).samples, source.max_samples)

    for _ in range(30):
        next_batch(source)
        assert look() == 0
    for _ in client.sample(tables.REPLAY, 500, emit_timesteps=False):
        pass
    # Certain are all but those that our own stream might have taken meanwhile.
    assert 500 - 2 * source.stream_items <= look() <= 500


def test_a_restarted_server_counts_anew_and_accuses_nobody():
    foreign = ForeignSamples(slack=10)
    assert foreign.observe(1000, 20) == 0
    assert foreign.observe(100, 30) == 0
    assert foreign.observe(150, 80) == 0
    assert foreign.observe(400, 100) == 220


def test_replay_of_nothing_but_junk_gives_no_batch(make_server, connect):
    server = make_server(n_step=N_STEP)
    insert_junk(connect(server), 10)
    source = make_source(server)
    assert source() is None
    assert source.rejected_items >= 8


def test_good_items_keep_their_place_and_fill_those_of_the_bad():
    good = np.array([False, True, False, True, False])
    assert range_check.refill_indices(good).tolist() == [1, 1, 3, 3, 1]
