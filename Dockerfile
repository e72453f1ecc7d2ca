# The `arbor` program in a small image:
#
#   docker build -t arbor . && docker run --rm -v "$PWD:/data" -w /data arbor demo
FROM rust:1.95-bookworm AS build
WORKDIR /arboretum
COPY . .
RUN cargo build --profile dist --locked --package arbor-cli

FROM debian:bookworm-slim
COPY --from=build /arboretum/target/dist/arbor /usr/local/bin/arbor
ENTRYPOINT ["arbor"]
