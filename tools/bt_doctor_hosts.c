/* SPDX-License-Identifier: BSD-3-Clause
 * Copyright (c) 2026 The bfo authors
 *
 * bfo doctor --hosts: takes the findings that each node reports, and finds out what only all of them together show: whether the releases are the
 * same, and which ports of two nodes have a subnet in common, so that rails can join them. DESIGN.txt section 19.5.
 */
#include "bt_doctor.h"
#include "bt_hosts.h"

#include <stdlib.h>
#include <string.h>

enum { SECONDS = 120, MOST_PORTS = 64 };
#define BETWEEN "between the nodes"

/* What is compared of a node: the subnets and settings of the ports that the BTL uses. */
typedef struct {
    const char *host;
    const json_t *said; /* its answer; NULL if it cannot be read */
    struct {
        const char *port, *subnet;
        json_int_t mtu, class;
    } port[MOST_PORTS];
    size_t n_ports;
} node_t;

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return NULL == text ? "" : text;
}

static void take_ports(node_t *node)
{
    const json_t *ports = json_object_get(node->said, "ports");

    for (size_t i = 0; i < json_array_size(ports) && node->n_ports < MOST_PORTS; ++i) {
        const json_t *port = json_array_get(ports, i);

        if (json_is_true(json_object_get(port, "used")) && '\0' != *text_of(port, "subnet")) {
            node->port[node->n_ports].port = text_of(port, "port");
            node->port[node->n_ports].subnet = text_of(port, "subnet");
            node->port[node->n_ports].mtu = json_integer_value(json_object_get(port, "mtu"));
            node->port[node->n_ports].class = json_integer_value(json_object_get(port, "traffic_class"));
            ++node->n_ports;
        }
    }
}

/* ---- two nodes ------------------------------------------------------------------------------------------------- */

static size_t ports_in(const node_t *node, const char *subnet, size_t until)
{
    size_t n = 0;

    for (size_t i = 0; i < until; ++i) {
        n += 0 == strcmp(subnet, node->port[i].subnet);
    }
    return n;
}

/* Counts the rails between two nodes; they pair the ports of a subnet one by one. *alone: a port of `a` without a partner, or NULL. */
static size_t rails_between(const node_t *a, const node_t *b, const char **alone)
{
    size_t rails = 0;

    *alone = NULL;
    for (size_t i = 0; i < a->n_ports; ++i) {
        if (ports_in(a, a->port[i].subnet, i) < ports_in(b, a->port[i].subnet, b->n_ports)) {
            ++rails;
        } else {
            *alone = a->port[i].port;
        }
    }
    return rails;
}

/* True if the pair is as it has to be. */
static bool look_at_pair(bt_doctor_t *doctor, const node_t *a, const node_t *b)
{
    const char *alone_a, *alone_b;
    const size_t rails = rails_between(a, b, &alone_a);

    (void) rails_between(b, a, &alone_b);
    if (0 == rails) {
        bt_doctor_find(doctor, BT_PROBLEM, BETWEEN, "give ports of both the same subnet; btl_openib_fabrics must not tell them apart",
                       "no rail joins %s and %s: their ports have no subnet in common", a->host, b->host);
    } else if (1 == rails) {
        bt_doctor_find(doctor, BT_PROBLEM, BETWEEN, "give a second port of both the same subnet",
                       "one rail alone joins %s and %s: its loss is not survived", a->host, b->host);
    } else if (NULL != alone_a || NULL != alone_b) {
        bt_doctor_find(doctor, BT_WARNING, BETWEEN, NULL, "%zu rails join %s and %s; %s of %s has no partner", rails, a->host, b->host,
                       NULL != alone_a ? alone_a : alone_b, NULL != alone_a ? a->host : b->host);
    } else {
        return true;
    }
    return false;
}

static bool are_alike(const node_t *a, const node_t *b)
{
    bool alike = a->n_ports == b->n_ports;

    for (size_t i = 0; alike && i < a->n_ports; ++i) {
        alike = ports_in(a, a->port[i].subnet, a->n_ports) == ports_in(b, a->port[i].subnet, b->n_ports);
    }
    return alike;
}

/* Looks at pairs of nodes. One node stands for all that are alike; two alike nodes are also looked at as a pair. */
static void look_at_pairs(bt_doctor_t *doctor, const node_t *node, size_t n)
{
    const size_t before = doctor->problems + doctor->warnings;
    size_t *kind = calloc(n, sizeof(*kind)), kinds = 0;

    for (size_t i = 0; NULL != kind && i < n; ++i) {
        size_t k = 0, second = n;

        while (k < kinds && !are_alike(&node[kind[k]], &node[i])) {
            ++k;
        }
        if (k < kinds) {
            continue;
        }
        for (size_t j = i + 1; j < n && n == second; ++j) {
            second = are_alike(&node[i], &node[j]) ? j : n;
        }
        for (k = 0; k < kinds; ++k) {
            (void) look_at_pair(doctor, &node[kind[k]], &node[i]);
        }
        if (second < n) {
            (void) look_at_pair(doctor, &node[i], &node[second]);
        }
        kind[kinds++] = i;
    }
    if (1 < n && 1 == kinds && before == doctor->problems + doctor->warnings) {
        bt_doctor_find(doctor, BT_OK, BETWEEN, NULL, "%zu rails join any two of the %zu nodes", node[0].n_ports, n);
    } else if (1 < n && before == doctor->problems + doctor->warnings) {
        bt_doctor_find(doctor, BT_OK, BETWEEN, NULL, "at least two rails join any two of the %zu nodes", n);
    }
    free(kind);
}

/* ---- all nodes ----------------------------------------------------------------------------------------------------- */

static void look_at_releases(bt_doctor_t *doctor, const node_t *node, size_t n)
{
    size_t others = 0;

    for (size_t i = 1; i < n; ++i) {
        if (0 != strcmp(text_of(node[0].said, "version"), text_of(node[i].said, "version"))) {
            ++others;
            bt_doctor_find(doctor, BT_PROBLEM, BETWEEN, "install one release of bfo on all nodes", "bfo %.40s on %s, and %.40s on %s",
                           text_of(node[0].said, "version"), node[0].host, text_of(node[i].said, "version"), node[i].host);
        }
    }
    if (0 == others && 1 < n) {
        bt_doctor_find(doctor, BT_OK, BETWEEN, NULL, "bfo %.40s on all %zu nodes", text_of(node[0].said, "version"), n);
    }
}

static bool are_alike_here(bt_doctor_t *doctor, const node_t *a, size_t p, const node_t *b, size_t q)
{
    if (a->port[p].mtu != b->port[q].mtu) { /* both sides use the smaller MTU, but perhaps a switch was forgotten too */
        bt_doctor_find(doctor, BT_WARNING, BETWEEN, "set one MTU on all ports of a subnet, and on its switches",
                       "MTU %lld of %s on %s, and %lld of %s on %s, in one subnet", (long long) a->port[p].mtu, a->port[p].port, a->host,
                       (long long) b->port[q].mtu, b->port[q].port, b->host);
        return false;
    }
    if (a->port[p].class != b->port[q].class) {
        bt_doctor_find(doctor, BT_WARNING, BETWEEN, "configure one traffic class, or set btl_openib_ib_traffic_class",
                       "traffic class %lld of %s on %s, and %lld of %s on %s: switches may treat one direction as lossy",
                       (long long) a->port[p].class, a->port[p].port, a->host, (long long) b->port[q].class, b->port[q].port, b->host);
        return false;
    }
    return true;
}

/* Ports that can be joined must have the same MTU and the same traffic class. Reports only the first pair that differs. */
static void look_at_settings(bt_doctor_t *doctor, const node_t *node, size_t n)
{
    for (size_t i = 1; i < n; ++i) {
        for (size_t p = 0; p < node[i].n_ports; ++p) {
            for (size_t q = 0; q < node[0].n_ports; ++q) {
                if (0 == strcmp(node[i].port[p].subnet, node[0].port[q].subnet) && !are_alike_here(doctor, &node[0], q, &node[i], p)) {
                    return;
                }
            }
        }
    }
}

static json_t *said_by(const bt_host_t *host)
{
    json_t *said = -1 == host->status ? NULL : json_loadb((const char *) host->out, host->length, 0, NULL);

    if (json_is_object(said) && json_is_array(json_object_get(said, "findings"))) {
        return said;
    }
    json_decref(said);
    return NULL;
}

/* A node's findings become findings here, under its name. The good ones are only counted. */
static void take_findings(bt_doctor_t *doctor, const char *host, const json_t *said)
{
    const json_t *findings = json_object_get(said, "findings");
    size_t well = 0;

    for (size_t i = 0; i < json_array_size(findings); ++i) {
        const json_t *finding = json_array_get(findings, i);
        const char *verdict = text_of(finding, "verdict");

        if (0 == strcmp("problem", verdict) || 0 == strcmp("warning", verdict)) {
            char remedy[1024];

            snprintf(remedy, sizeof(remedy), "%s", text_of(finding, "remedy"));
            bt_doctor_clean(remedy);
            bt_doctor_find(doctor, 'p' == verdict[0] ? BT_PROBLEM : BT_WARNING, host, remedy, "%s: %s", text_of(finding, "group"),
                           text_of(finding, "text"));
        } else {
            ++well;
        }
    }
    bt_doctor_find(doctor, BT_OK, host, NULL, "%zu findings are well", well);
}

bool bt_doctor_hosts(bt_doctor_t *doctor, const bt_source_t *source)
{
    const char *const words[] = {"doctor", "--json", NULL};
    const char *wrong = bt_hosts_check(source, words);
    bt_hosts_t hosts = {.host = NULL};
    json_t *all = json_array(); /* keeps the nodes' answers */
    node_t *node;
    size_t n = 0;

    if (NULL != wrong) {
        fprintf(stderr, "bfo doctor: %s\n", wrong);
        exit(BT_USAGE);
    }
    node = bt_hosts_run(&hosts, source, words, 1 << 24, SECONDS) ? calloc(hosts.n, sizeof(*node)) : NULL;
    for (size_t i = 0; NULL != node && i < hosts.n; ++i) {
        json_t *said = said_by(&hosts.host[i]);

        if (NULL == said) {
            bt_doctor_find(doctor, BT_PROBLEM, hosts.host[i].host, "log in there and call 'bfo doctor'", "bfo doctor says nothing that can be read");
            continue;
        }
        json_array_append_new(all, said);
        take_findings(doctor, hosts.host[i].host, said);
        node[n] = (node_t){.host = hosts.host[i].host, .said = said};
        take_ports(&node[n++]);
    }
    if (0 != n) {
        look_at_releases(doctor, node, n);
        look_at_pairs(doctor, node, n);
        look_at_settings(doctor, node, n);
    }
    json_decref(doctor->ports);
    doctor->ports = all;
    free(node);
    bt_hosts_free(&hosts);
    return NULL != node;
}
