# The stand-in for k3s; see tests/standin/README.md.
STANDIN_SRC := $(wildcard tests/standin/*.py tests/standin/standin/*.py)

build/tests/k3s: $(STANDIN_SRC) tests/standin/build.sh
	tests/standin/build.sh $@
