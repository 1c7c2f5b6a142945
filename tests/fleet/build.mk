# Programs of the fleet level: simulated nodes, and a client of the control
# socket.
FLEET := $(addprefix $(BUILD)/tests/fleet/,simfleet fleetctl)

tests: $(FLEET)
$(BUILD)/tests/fleet/simfleet: $(call objs,tests/fleet/simfleet tests/fleet/simagent) \
		$(call lib,tls proto common)
	@echo "  LD $@"; $(CC) $(LDFLAGS) -o $@ $^ -lsystemd $(LIBS_tls) $(LIBS_proto)
$(BUILD)/tests/fleet/fleetctl: $(call objs,tests/fleet/fleetctl) \
		$(call lib,coord spec tls proto common)
	@echo "  LD $@"; $(CC) $(LDFLAGS) -o $@ $^ $(LIBS_coord) $(LIBS_tls) $(LIBS_spec) $(LIBS_proto)

