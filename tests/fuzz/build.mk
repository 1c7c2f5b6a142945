# Fuzz targets: bounded runs are unit tests, long ones use libFuzzer:
#   make build/fuzz_spec && mkdir -p build/corpus && build/fuzz_spec -max_len=8192 \
#     -dict=tests/fuzz/spec.dict -max_total_time=600 build/corpus tests/fuzz/corpus_spec
$(BUILD)/tests/test_spec_fuzz: tests/fuzz/fuzz_spec.c

$(BUILD)/fuzz_%: tests/fuzz/fuzz_%.c $(call lib,proto)
	@echo "  LD $@"; clang -g -O1 -fsanitize=fuzzer,address,undefined $(CPPFLAGS) -o $@ $< \
		$(addprefix spec/,$(addsuffix .c,$(SPEC))) \
		$(addprefix common/,$(addsuffix .c,$(COMMON))) $(call lib,proto) \
		$(LIBS_spec) $(LIBS_proto)
