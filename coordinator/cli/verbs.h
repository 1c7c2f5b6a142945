/*
 * verbs.h - the functions behind the table in verbs.c, one file per verb.
 */
#pragma once

#include "coordinator/cli/cli.h"

extern const struct cli_option init_options[];
extern const struct cli_option serve_options_table[];
extern const struct cli_option spec_show_options[];
extern const struct cli_option enroll_bundle_options[];
extern const struct cli_option enroll_ssh_options[];
extern const struct cli_option enroll_token_options[];
extern const struct cli_option enroll_approve_options[];
extern const struct cli_option up_options[];
extern const struct cli_option plan_options[];
extern const struct cli_option verify_options[];
extern const struct cli_option wipe_options[];
extern const struct cli_option kubeconfig_options[];
extern const struct cli_option events_options[];

/* up.c: --expect (B14), and a wait for who dials a coordinator just started */
int cli_check_expected(const struct cli *cli, struct fault *f);
int cli_await_nodes(const struct cli *cli, struct control *c, struct fault *f);

int verb_init(struct cli *cli, struct fault *f);
int verb_serve(struct cli *cli, struct fault *f);
int verb_up(struct cli *cli, struct fault *f);
int verb_plan(struct cli *cli, struct fault *f);
int verb_verify(struct cli *cli, struct fault *f);
int verb_doctor(struct cli *cli, struct fault *f);
int verb_status(struct cli *cli, struct fault *f);
int verb_events(struct cli *cli, struct fault *f);
int verb_spec_check(struct cli *cli, struct fault *f);
int verb_spec_show(struct cli *cli, struct fault *f);
int verb_spec_migrate(struct cli *cli, struct fault *f);
int verb_enroll_bundle(struct cli *cli, struct fault *f);
int verb_enroll_ssh(struct cli *cli, struct fault *f);
int verb_enroll_token(struct cli *cli, struct fault *f);
int verb_enroll_list(struct cli *cli, struct fault *f);
int verb_enroll_approve(struct cli *cli, struct fault *f);
int verb_enroll_reject(struct cli *cli, struct fault *f);
int verb_node_list(struct cli *cli, struct fault *f);
int verb_node_describe(struct cli *cli, struct fault *f);
int verb_node_revoke(struct cli *cli, struct fault *f);
int verb_node_wipe(struct cli *cli, struct fault *f);
int verb_kubeconfig(struct cli *cli, struct fault *f);
int verb_manifests(struct cli *cli, struct fault *f);
int verb_version(struct cli *cli, struct fault *f);
