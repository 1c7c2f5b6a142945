/*
 * field.h - tables of keys with typed parsers, the engine under keys_*.c.
 *
 * A section of the file is one table: name, parser, place in the struct.
 * Parsers record findings with positions and go on; they write a value only
 * when it is right, and its position always. Internal to spec/.
 */
#pragma once

#include <stddef.h>

#include "spec/arena.h"
#include "spec/problem.h"
#include "spec/spec.h"
#include "spec/yaml.h"

#define FIELD_LIST_MAX 4096
#define FIELD_TEXT_MAX 1024

enum field_text {	/* patterns of field.c, in the same order */
	FIELD_ANY,
	FIELD_NAME,
	FIELD_ID,
	FIELD_UUID,
	FIELD_SERIAL,
	FIELD_MAC,
	FIELD_HOST,
	FIELD_SHA256,
	FIELD_INTERFACE,
	FIELD_MODULE,
	FIELD_SYSCTL,
	FIELD_LINE,
	FIELD_PATH,
	FIELD_KERNEL,
	FIELD_PERCENT,
	FIELD_DURATION,
	FIELD_LISTEN,
	FIELD_CHART,
	FIELD_LABEL_KEY,
	FIELD_LABEL_VALUE,
	FIELD_TAINT,
	FIELD_WAIVER,
	FIELD_K3S_VALUE,
	FIELD_TEXT_KINDS,
};

struct loader;
struct field;

/* `pair` is the key and its value; `dest` the place for the value. */
typedef void (*field_parser)(struct loader *l, const struct field *field,
			     const struct yaml_pair *pair, void *dest);

enum field_flags {
	FIELD_REQUIRED = 1,
};

struct field {		/* a table ends with key NULL */
	const char *key;
	field_parser parse;
	size_t offset;
	const void *arg;	/* of the parser */
	enum field_text text;	/* pattern of text and texts */
	unsigned int flags;
};

struct field_range { uint64_t min, max; };
struct field_section { const char *name; const struct field *fields; };

struct loader *loader_new(struct spec_arena *arena,
			  struct spec_problems *problems);
struct loader *loader_free(struct loader *l);
struct spec_arena *loader_arena(struct loader *l);
bool loader_no_memory(const struct loader *l);

/* NULL (and remembered) without memory. */
void *loader_alloc(struct loader *l, size_t n, size_t size);
void loader_error(struct loader *l, struct spec_pos pos, const char *code,
		  const char *fmt, ...) __attribute__((format(printf, 4, 5)));

/* Every key of `map` by the table; `map` may be of a wrong type. */
void field_map(struct loader *l, const struct yaml_node *map,
	       const struct field_section *section, void *dest);

/* Whether the node is of that kind; else a finding ("what" is a name). */
bool field_is(struct loader *l, const struct yaml_node *node,
	      enum yaml_kind kind, const char *what);
/* One scalar as text of that pattern; false after a finding. */
bool field_scalar(struct loader *l, const struct yaml_node *node,
		  const char *what, enum field_text kind,
		  struct spec_str *ret_str);

/* Parsers, by the type of `dest`. */
void field_str(struct loader *, const struct field *, const struct yaml_pair *,
	       void *);		/* spec_str */
void field_strs(struct loader *, const struct field *, const struct yaml_pair *,
		void *);	/* spec_strs */
void field_flag(struct loader *, const struct field *, const struct yaml_pair *,
		void *);	/* spec_flag */
void field_num(struct loader *, const struct field *, const struct yaml_pair *,
	       void *);		/* spec_num; arg: field_range */
void field_enum(struct loader *, const struct field *, const struct yaml_pair *,
		void *);	/* spec_enum; arg: names, NULL at the end */
void field_addr(struct loader *, const struct field *, const struct yaml_pair *,
		void *);	/* spec_addr */
void field_addrs(struct loader *, const struct field *,
		 const struct yaml_pair *, void *);	/* spec_addrs */
void field_prefix(struct loader *, const struct field *,
		  const struct yaml_pair *, void *);	/* spec_prefix */
void field_prefixes(struct loader *, const struct field *,
		    const struct yaml_pair *, void *);	/* spec_prefixes */
void field_endpoints(struct loader *, const struct field *,
		     const struct yaml_pair *, void *);	/* spec_endpoints */
void field_pairs(struct loader *, const struct field *,
		 const struct yaml_pair *, void *);	/* spec_pairs; keys: arg */
/* A nested section: arg is its field_section, `dest` begins with spec_pos. */
void field_section(struct loader *, const struct field *,
		   const struct yaml_pair *, void *);
/* Accepts nothing: error not-yet-supported; arg is the consequence. */
void field_later(struct loader *, const struct field *,
		 const struct yaml_pair *, void *);

/* keys_*.c: the tables of the file. */
extern const struct field_section keys_spec, keys_one_box, keys_baseline;
void keys_k3s_config(struct loader *, const struct field *,
		     const struct yaml_pair *, void *);	/* struct spec_k3s */
void keys_classes(struct loader *, const struct field *,
		  const struct yaml_pair *, void *);	/* struct spec_egress */
void keys_tunnels(struct loader *, const struct field *,
		  const struct yaml_pair *, void *);	/* struct spec_egress */
void keys_uplinks(struct loader *, const struct field *,
		  const struct yaml_pair *, void *);	/* spec_strs */
void keys_nodes(struct loader *, const struct field *,
		const struct yaml_pair *, void *);	/* struct spec */
extern const struct field_section keys_coordinator, keys_control_plane, keys_k3s,
	keys_kube_vip, keys_cilium, keys_network, keys_egress, keys_monitoring,
	keys_rollout;
