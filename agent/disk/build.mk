# garboard-disk: the one program that looks into devices. Only it links
# libblkid, and only it may.
LIBS_disk := -lblkid
$(BUILD)/garboard-disk: $(call objs,agent/disk/main agent/disk/make) \
		$(call lib,agent common)
	@echo "  LD $@"; $(CC) $(LDFLAGS) -o $@ $^ $(LIBS_disk)
