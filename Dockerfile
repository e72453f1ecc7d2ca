# The `arbor` program in a small image:
#
#   docker build -t arbor . && docker run --rm -v "$PWD:/data" -w /data arbor demo
#
# `--build-arg PROFILE=dev` builds in a fraction of the time, for a check of this file.
FROM rust:1.95-bookworm AS build
ARG PROFILE=dist
WORKDIR /arboretum
COPY . .
RUN cargo build --profile "$PROFILE" --locked --package arbor-cli && cp target/*/arbor /arbor

FROM debian:bookworm-slim
COPY --from=build /arbor /usr/local/bin/arbor
ENTRYPOINT ["arbor"]
