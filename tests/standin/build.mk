# The stand-in for k3s as one executable file; see tests/standin/README.md.
STANDIN_SRC := $(wildcard tests/standin/__main__.py tests/standin/standin/*.py)

tests: $(BUILD)/tests/k3s
$(BUILD)/tests/k3s: $(STANDIN_SRC) tests/standin/build.sh
	@echo "  ZIP $@"; tests/standin/build.sh $@
