# Programs that measure; built by `make bench`, run by tests/bench/run only.
BENCH := $(addprefix $(BUILD)/bench/,raw oneshot look repair policy)

bench: all $(BENCH)
	tests/bench/run $(BUILD)
$(BUILD)/bench/raw: $(call objs,tests/bench/raw)
$(BUILD)/bench/oneshot: $(call objs,tests/bench/oneshot)
$(BUILD)/bench/look: $(call objs,tests/bench/look) $(call lib,agent spec proto common)
$(BUILD)/bench/repair: $(call objs,tests/bench/repair tests/bench/repair_bare) $(call lib,agent spec proto common)
$(BUILD)/bench/policy: $(call objs,tests/bench/policy) $(call lib,agent spec proto common)
$(BENCH):
	@mkdir -p $(@D)
	@echo "  LD $@"; $(CC) $(LDFLAGS) -o $@ $^ $(LIBS_agent) $(LIBS_spec) $(LIBS_proto)

# Side by side with what people use instead; installs it by name into a root
# of its own (tests/bench/compare/run).
bench-compare: all deb $(BUILD)/bench/cost
	tests/bench/compare/run $(BUILD)
$(BUILD)/bench/cost: $(call objs,tests/bench/cost)
	@mkdir -p $(@D)
	@echo "  LD $@"; $(CC) $(LDFLAGS) -o $@ $^
.PHONY: bench-compare
