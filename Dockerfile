# The whole program in one image: the learner's host and actor hosts differ by their command alone.
# What is installed, and how, is `make setup`'s: from the hash locks. docs/containers.md has the use.
#
#     docker build --tag vantage .                        # for CPUs; --build-arg DEVICE=cuda or tpu
FROM python:3.11-bookworm AS setup
ARG DEVICE=cpu
WORKDIR /opt/vantage
COPY . .
# Readable for any user, however strict the umask was where it was checked out.
RUN --mount=type=cache,target=/root/.cache/pip make setup DEVICE="$DEVICE" && chmod -R go=rX .

FROM python:3.11-slim-bookworm
COPY --from=setup /opt/vantage /opt/vantage
# Nothing is written but to the run directory and /tmp, so the root may be read-only.
ENV PATH=/opt/vantage/.venv/bin:$PATH HOME=/tmp PYTHONDONTWRITEBYTECODE=1
WORKDIR /tmp
USER 1000:1000
ENTRYPOINT ["vantage"]
CMD ["help"]
