"""A stand-in for k3s: see ../README.md for what is real and what is not."""

VERSION = "v1.36.4+k3s1"
COMMIT = "standin"
