#include "agent/bus/systemd1_unit.h"

#include <ctype.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"

struct property {
	const char *name;
	char type;
	size_t offset;
};

#define P(name, type, field) { name, type, offsetof(struct systemd1_unit, field) }
static const struct property properties[] = {
	P("LoadState", 's', load_state),
	P("ActiveState", 's', active_state),
	P("SubState", 's', sub_state),
	P("UnitFileState", 's', unit_file_state),
	P("Result", 's', result),
	P("NeedDaemonReload", 'b', need_daemon_reload),
	P("NRestarts", 'u', n_restarts),
	P("MainPID", 'u', main_pid),
	P("ExecMainStatus", 'i', exec_main_status),
	P("ActiveEnterTimestampMonotonic", 't', active_enter),
};

static const struct property *find(const char *name)
{
	size_t i;

	for (i = 0; i < sizeof(properties) / sizeof(properties[0]); i++)
		if (strcmp(properties[i].name, name) == 0)
			return &properties[i];
	return NULL;
}

static int read_value(sd_bus_message *m, const struct property *p, void *field)
{
	const char *text;
	int r, flag;

	switch (p->type) {
	case 's':
		r = sd_bus_message_read_basic(m, 's', &text);
		if (r > 0)
			(void)snprintf(field, SYSTEMD1_STATE_MAX, "%s", text);
		return r;
	case 'b':
		r = sd_bus_message_read_basic(m, 'b', &flag);
		if (r > 0)
			*(bool *)field = flag;
		return r;
	default:
		return sd_bus_message_read_basic(m, p->type, field);
	}
}

static int read_property(sd_bus_message *m, struct systemd1_unit *u)
{
	const struct property *p;
	const char *name, *contents;
	char type, want[2] = "";
	int r;

	r = sd_bus_message_read_basic(m, 's', &name);
	if (r < 0)
		return r;
	p = find(name);
	r = sd_bus_message_peek_type(m, &type, &contents);
	if (r < 0)
		return r;
	if (!p || type != 'v' || !contents || contents[0] != p->type ||
	    contents[1])
		return sd_bus_message_skip(m, "v");
	want[0] = p->type;
	r = sd_bus_message_enter_container(m, 'v', want);
	if (r >= 0)
		r = read_value(m, p, (char *)u + p->offset);
	return r < 0 ? r : sd_bus_message_exit_container(m);
}

int systemd1_unit_parse(sd_bus_message *m, struct systemd1_unit *ret_unit)
{
	struct systemd1_unit u = { 0 };
	int r;

	r = sd_bus_message_enter_container(m, 'a', "{sv}");
	while (r >= 0) {
		r = sd_bus_message_enter_container(m, 'e', "sv");
		if (r <= 0)
			break;
		r = read_property(m, &u);
		if (r >= 0)
			r = sd_bus_message_exit_container(m);
	}
	if (r < 0)
		return r;
	*ret_unit = u;
	return 0;
}

int systemd1_unit_path(const char *unit, char **ret_path)
{
	return sd_bus_path_encode(SYSTEMD1_PATH "/unit", unit, ret_path);
}

bool systemd1_unit_name_is_valid(const char *unit)
{
	static const char *const suffixes[] = {
		".service", ".socket", ".target", ".timer", ".mount", ".path",
		".slice", ".scope", ".swap", ".automount", ".device",
	};
	const char *dot = unit ? strrchr(unit, '.') : NULL, *p;
	size_t i;

	if (!dot || dot == unit || *unit == '@' ||
	    strlen(unit) >= SYSTEMD1_UNIT_NAME_MAX || dot[-1] == '@')
		return false;
	for (p = unit; *p; p++)
		if (!isalnum((unsigned char)*p) && !strchr(":-_.\\@", *p))
			return false;
	for (i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
		if (strcmp(dot, suffixes[i]) == 0)
			return true;
	return false;
}

int systemd1_unit_read(struct bus *b, const char *unit, usec timeout,
		       struct systemd1_unit *ret_unit, struct fault *f)
{
	sd_bus_error e = SD_BUS_ERROR_NULL;
	sd_bus_message *m = NULL, *reply = NULL;
	_cleanup_free_ char *path = NULL;
	int r;

	if (!bus_is_up(b))
		return fault_set(f, -ENOTCONN, "D-Bus", "is not there yet");
	if (!systemd1_unit_name_is_valid(unit))
		return fault_set(f, -EINVAL, unit, "is no name of a unit");
	r = systemd1_unit_path(unit, &path);
	if (r >= 0)
		r = sd_bus_message_new_method_call(
			bus_connection(b), &m, SYSTEMD1_NAME, path,
			"org.freedesktop.DBus.Properties", "GetAll");
	if (r >= 0)
		r = sd_bus_message_append(m, "s", "");
	if (r >= 0)
		r = sd_bus_call(bus_connection(b), m, timeout, &e, &reply);
	if (r >= 0)
		r = systemd1_unit_parse(reply, ret_unit);
	if (r < 0)
		r = fault_errno(f, r, unit, "cannot be read: %s",
				e.message ? e.message : "D-Bus");
	sd_bus_error_free(&e);
	sd_bus_message_unref(m);
	sd_bus_message_unref(reply);
	return r < 0 ? r : 0;
}
