# Fuzz targets: bounded runs are unit tests, long ones use libFuzzer:
#   make build/fuzz_spec && mkdir -p build/corpus && build/fuzz_spec -max_len=8192 \
#     -dict=tests/fuzz/spec.dict -max_total_time=600 build/corpus tests/fuzz/corpus_spec
$(BUILD)/tests/test_spec_fuzz: tests/fuzz/fuzz_spec.c

$(BUILD)/fuzz_%: tests/fuzz/fuzz_%.c $(call lib,proto)
	@echo "  LD $@"; clang -g -O1 -fsanitize=fuzzer,address,undefined $(CPPFLAGS) -o $@ $< \
		$(addprefix spec/,$(addsuffix .c,$(SPEC))) \
		$(addprefix common/,$(addsuffix .c,$(COMMON))) $(call lib,proto) \
		$(LIBS_spec) $(LIBS_proto)

# The same for what strangers can send:
#   make build/fuzz_proto && mkdir -p build/corpus_proto && build/fuzz_proto \
#     -max_len=4096 -max_total_time=600 build/corpus_proto
$(BUILD)/fuzz_proto: tests/fuzz/fuzz_proto.c | $(BUILD)/gen/garboard.pb-c.h
	@echo "  LD $@"; clang -g -O1 -fsanitize=fuzzer,address,undefined $(CPPFLAGS) -o $@ $< \
		$(addprefix common/,$(addsuffix .c,$(COMMON))) \
		$(addprefix proto/,$(addsuffix .c,$(PROTO))) $(BUILD)/gen/garboard.pb-c.c \
		$(LIBS_proto)
