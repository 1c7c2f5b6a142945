# garboard-metrics: HTTP for Prometheus, from the agent's status socket. A
# program and units of its own; `make install-metrics` places them.
DEPS += libmicrohttpd-dev

tests: $(BUILD)/garboard-metrics
$(BUILD)/garboard-metrics: $(call objs,agent/metrics/main agent/metrics/http agent/metrics/render) \
		$(call lib,agent spec proto common)
	@echo "  LD $@"; $(CC) $(LDFLAGS) -o $@ $^ -lmicrohttpd -lsystemd $(LIBS_spec)

.PHONY: install-metrics
install-metrics: $(BUILD)/garboard-metrics
	install -D -m 755 -t $D/lib/garboard $(BUILD)/garboard-metrics
	install -D -m 644 -t $(DESTDIR)$(UNITDIR) agent/metrics/garboard-metrics.service \
		agent/metrics/garboard-metrics.socket
	install -D -m 644 -t $D/share/man/man8 agent/metrics/garboard-metrics.8
	install -D -m 644 -t $D/share/garboard agent/metrics/alerts.yaml
