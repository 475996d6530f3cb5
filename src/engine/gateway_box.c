/* SPDX-License-Identifier: Apache-2.0 */
/* What a gateway has for each box: its class, counters, pins, connections; see gateway.h. */
#include "engine/gateway_nft.h"

#include "base/mem.h"
#include "engine/gateway_impl.h"

#include <linux/netfilter/nf_tables.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

/*
 * What most boxes have is a number in a map. A chain of a box's own costs a look at all those of the others when it is set, because the kernel follows
 * every jump there is.
 */
enum class { CLASS_NONE, CLASS_OPEN, CLASS_NAMED, CLASS_OWN };

/* What is known of a box that was admitted. */
struct entry {
    enum class class;
    char chain[NFT_NAME_MAXLEN]; // of CLASS_OWN
    uint32_t tag;                // of its pins; 0: none
    uint32_t mark;               // of its connections
    bool is_judged, is_named;
};

static struct nft_key key_of(const struct gateway *gateway, unsigned slot)
{
    return nft_key_address(gateway_box_address(gateway, slot));
}

static int look_up(struct gateway *gateway, unsigned slot, struct entry *out)
{
    const struct nft_key key = key_of(gateway, slot);
    struct nft_element found;

    *out = (struct entry){0};
    int code = nft_find(gateway, "class", &key, &found);
    if (code == ENOENT)
        return 0;
    if (code)
        return code;
    out->class = found.mark;
    if (out->class == CLASS_OWN && nft_find(gateway, "own", &key, &found) == 0)
        (void)snprintf(out->chain, sizeof out->chain, "%s", found.chain);
    if (nft_find(gateway, "tags", &key, &found) == 0)
        out->tag = found.mark;
    if (nft_find(gateway, "marks", &key, &found) == 0)
        out->mark = found.mark;
    out->is_judged = nft_find(gateway, "judged", &key, &found) == 0;
    out->is_named = nft_find(gateway, "named", &key, &found) == 0;
    return 0;
}

static uint32_t make_tag(void)
{
    uint32_t tag = 0;
    while (getrandom(&tag, sizeof tag, 0) != sizeof tag || tag == 0)
        ;
    return tag;
}

/* The slot, by which all of its are found at its end, and what tells those from now on from others. */
#define MARK_BITS 17
#define MARK_MASK (UINT32_MAX << MARK_BITS)

static uint32_t mark_of(unsigned slot)
{
    return (slot + 1) << MARK_BITS;
}

static uint32_t make_mark(unsigned slot, uint32_t before)
{
    uint32_t mark = before;
    while (mark == before)
        mark = mark_of(slot) | (make_tag() & ~MARK_MASK);
    return mark;
}

static struct nft_key connections_of(const struct gateway *gateway, unsigned slot, uint32_t mark)
{
    struct nft_key key = key_of(gateway, slot);
    nft_key_add_mark(&key, mark);
    return key;
}

/* Connections that were let through before are judged again. */
static void put_mark(struct messages *messages, const struct gateway *gateway, unsigned slot,
                     uint32_t before)
{
    const struct nft_key key = key_of(gateway, slot);
    const struct nft_element value = {.mark = make_mark(slot, before)};
    const struct nft_key old = connections_of(gateway, slot, before);
    const struct nft_key now = connections_of(gateway, slot, value.mark);

    if (before) {
        nft_remove_element(messages, "marks", &key);
        nft_remove_element(messages, "current", &old);
    }
    nft_put_element(messages, "marks", &key, &value, 0);
    nft_put_element(messages, "current", &now, NULL, 0);
}

/* Where a packet goes that no rule of a box decides. */
static const char *default_chain(const struct policy_kernel *kernel)
{
    if (kernel->is_default_allow)
        return "open";
    return kernel->is_observing ? "note" : "refuse";
}

static const char *rule_chain(const struct policy_kernel *kernel,
                              const struct policy_kernel_rule *rule)
{
    if (!rule->is_allow)
        return kernel->is_observing ? "note" : "refuse";
    return rule->is_operators ? "pass" : "open"; // "open" refuses what is closed
}

static void put_rules(struct messages *messages, const char *chain,
                      const struct policy_kernel *kernel, bool is_after_pins)
{
    for (size_t i = 0; i < kernel->count; i++) {
        const struct policy_kernel_rule *rule = &kernel->rules[i];
        if (rule->is_after_pins == is_after_pins)
            nft_put_rule(messages, chain, rule, rule_chain(kernel, rule));
    }
}

static void put_chain(struct messages *messages, const char *chain,
                      const struct policy_kernel *kernel)
{
    nft_put_chain(messages, chain);
    put_rules(messages, chain, kernel, false);
    if (kernel->class == POLICY_CLASS_NAMES)
        nft_put_jump(messages, chain, "names");
    put_rules(messages, chain, kernel, true);
    nft_put_goto(messages, chain, default_chain(kernel));
}

static enum class class_of(const struct policy_kernel *kernel) {
    if (kernel->count > 0 || kernel->is_observing) return CLASS_OWN;
    if (kernel->class == POLICY_CLASS_OPEN && kernel->is_default_allow) return CLASS_OPEN;
    if (kernel->class == POLICY_CLASS_NAMES && !kernel->is_default_allow) return CLASS_NAMED;
    return CLASS_OWN;
}

static void put_membership(struct messages *messages, const char *set, const struct nft_key *key,
                           bool was_in, bool is_in)
{
    if (was_in && !is_in)
        nft_remove_element(messages, set, key);
    else if (is_in && !was_in)
        nft_put_element(messages, set, key, NULL, 0);
}

static void remove_class(struct messages *messages, const struct nft_key *key,
                         const struct entry *old)
{
    if (old->class == CLASS_NONE)
        return;
    nft_remove_element(messages, "class", key);
    if (*old->chain) {
        nft_remove_element(messages, "own", key);
        nft_remove_chain(messages, old->chain);
    }
}

static void put_class(struct messages *messages, const struct nft_key *key, const struct entry *old,
                      const struct nft_element *class, const struct nft_element *own)
{
    remove_class(messages, key, old);
    nft_put_element(messages, "class", key, class, 0);
    if (*own->chain)
        nft_put_element(messages, "own", key, own, 0);
}

static int admit(struct gateway *gateway, unsigned slot, const struct policy_kernel *kernel,
                 uint32_t generation)
{
    const struct nft_key key = key_of(gateway, slot);
    struct nft_element own = {0};
    struct entry old;
    automessages messages = {0};

    int code = look_up(gateway, slot, &old);
    if (code)
        return code;
    batch_begin(&messages);
    const struct nft_element class = {.mark = class_of(kernel)};
    if (class.mark == CLASS_OWN) {
        (void)snprintf(own.chain, sizeof own.chain, "b%u.%u", slot, generation);
        if (strcmp(old.chain, own.chain) == 0)
            return EALREADY;
        put_chain(&messages, own.chain, kernel);
    }
    put_class(&messages, &key, &old, &class, &own);
    if (!old.tag) {
        const struct nft_element tag = {.mark = make_tag()};
        nft_put_element(&messages, "tags", &key, &tag, 0);
    }
    put_mark(&messages, gateway, slot, old.mark);
    if (old.class == CLASS_NONE) {
        nft_put_element(&messages, "bytes", &key, NULL, 0);
        nft_put_element(&messages, "refused", &key, NULL, 0);
    }
    put_membership(&messages, "judged", &key, old.is_judged, kernel->class != POLICY_CLASS_OPEN);
    put_membership(&messages, "named", &key, old.is_named, kernel->class == POLICY_CLASS_NAMES);
    return batch_send(gateway, &messages);
}

int gateway_admit(struct gateway *gateway, unsigned slot, const struct policy_kernel *kernel,
                  uint32_t generation, struct error *err)
{
    if (kernel->count > GATEWAY_MAX_RULES)
        return error_set(err, ERROR_LIMIT, "a sandbox has at most %d rules for addresses, not %zu",
                         GATEWAY_MAX_RULES, kernel->count);
    if (kernel->class == POLICY_CLASS_OFF)
        return gateway_dismiss(gateway, slot, err);
    int code = admit(gateway, slot, kernel, generation);
    if (code && code != EALREADY) // else this very change was made
        return error_sys_code(err, code, "set what the sandbox in slot %u may connect to", slot);
    return 0;
}

static int dismiss(struct gateway *gateway, unsigned slot, const struct entry *entry)
{
    const struct nft_key key = key_of(gateway, slot);
    automessages messages = {0};

    batch_begin(&messages);
    remove_class(&messages, &key, entry);
    nft_remove_element(&messages, "bytes", &key);
    nft_remove_element(&messages, "refused", &key);
    if (entry->tag)
        nft_remove_element(&messages, "tags", &key);
    if (entry->mark) {
        const struct nft_key connections = connections_of(gateway, slot, entry->mark);
        nft_remove_element(&messages, "marks", &key);
        nft_remove_element(&messages, "current", &connections);
    }
    put_membership(&messages, "judged", &key, entry->is_judged, false);
    put_membership(&messages, "named", &key, entry->is_named, false);
    return batch_send(gateway, &messages);
}

static int forget_connections(struct gateway *gateway, unsigned slot)
{
    const struct nfgenmsg header = {.nfgen_family = AF_INET, .version = NFNETLINK_V0};
    automessages messages = {0};

    message_begin(&messages, NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_DELETE, NLM_F_ACK, &header,
                  sizeof header);
    message_put_be32(&messages, CTA_MARK, mark_of(slot));
    message_put_be32(&messages, CTA_MARK_MASK, MARK_MASK);
    return gateway_ask(gateway, &messages, NULL, NULL);
}

int gateway_dismiss(struct gateway *gateway, unsigned slot, struct error *err)
{
    struct entry entry;
    struct gateway_counters counters = {0};

    int code = look_up(gateway, slot, &entry);
    if (code == 0 && entry.class == CLASS_NONE)
        return 0;
    if (code == 0)
        (void)gateway_counters(gateway, slot, &counters, err);
    if (code == 0)
        code = dismiss(gateway, slot, &entry);
    // Looking for connections is a walk through the machine's table: not for those that never had one.
    if (code == 0 && counters.sent_packets > 0)
        code = forget_connections(gateway, slot);
    return code ? error_sys_code(err, code, "take the sandbox in slot %u off the network", slot)
                : 0;
}

int gateway_cut(struct gateway *gateway, unsigned slot, struct error *err)
{
    automessages messages = {0};
    struct entry entry;

    int code = look_up(gateway, slot, &entry);
    if (code == 0 && entry.class != CLASS_NONE) {
        batch_begin(&messages);
        put_mark(&messages, gateway, slot, entry.mark);
        code = batch_send(gateway, &messages);
    }
    return code ? error_sys_code(err, code, "cut connections of the sandbox in slot %u", slot) : 0;
}

/* Pins are found by the box's tag: with another one there are none. Those of the old one go when their time is over. */
int gateway_unpin_all(struct gateway *gateway, unsigned slot, struct error *err)
{
    const struct nft_key key = key_of(gateway, slot);
    const struct nft_element tag = {.mark = make_tag()};
    struct entry entry;
    automessages messages = {0};

    int code = look_up(gateway, slot, &entry);
    if (code == 0 && entry.class != CLASS_NONE) {
        batch_begin(&messages);
        if (entry.tag)
            nft_remove_element(&messages, "tags", &key);
        nft_put_element(&messages, "tags", &key, &tag, 0);
        put_mark(&messages, gateway, slot, entry.mark);
        code = batch_send(gateway, &messages);
    }
    return code ? error_sys_code(err, code, "forget the pins of the sandbox in slot %u", slot) : 0;
}

static void put_pin(struct messages *messages, uint32_t box, uint32_t tag, uint32_t address,
                    uint8_t protocol, uint16_t port, uint64_t timeout_ms)
{
    struct nft_key key = nft_key_address(box);

    nft_key_add_mark(&key, tag);
    nft_key_add_address(&key, address);
    nft_key_add_protocol(&key, protocol);
    if (port)
        nft_key_add_port(&key, port);
    nft_put_element(messages, port ? "pins" : "whole", &key, NULL, timeout_ms);
}

int gateway_pin(struct gateway *gateway, unsigned slot, uint32_t address, unsigned protocols,
                uint16_t port, uint32_t seconds, struct error *err)
{
    static const struct {
        unsigned bit;
        uint8_t protocol;
    } all[] = {{POLICY_TCP, IPPROTO_TCP}, {POLICY_UDP, IPPROTO_UDP}, {POLICY_ICMP, IPPROTO_ICMP}};
    const struct nft_key key = key_of(gateway, slot);
    const uint64_t timeout_ms = (uint64_t)seconds * 1000;
    struct nft_element tag;
    automessages messages = {0};

    int code = nft_find(gateway, "tags", &key, &tag);
    if (code == ENOENT)
        return error_set(err, ERROR_NOT_FOUND, "no sandbox in slot %u has network", slot);
    batch_begin(&messages);
    for (unsigned i = 0; i < ARRAY_SIZE(all); i++) {
        if (protocols & all[i].bit && !(port && all[i].protocol == IPPROTO_ICMP))
            put_pin(&messages, gateway_box_address(gateway, slot), tag.mark, address,
                    all[i].protocol, port, timeout_ms);
    }
    if (code == 0)
        code = batch_send(gateway, &messages);
    return code ? error_sys_code(err, code, "pin an address for the sandbox in slot %u", slot) : 0;
}

int gateway_counters(struct gateway *gateway, unsigned slot, struct gateway_counters *out,
                     struct error *err)
{
    const struct nft_key key = key_of(gateway, slot);
    struct nft_element sent = {0};
    struct nft_element refused = {0};

    *out = (struct gateway_counters){0};
    int code = nft_find(gateway, "bytes", &key, &sent);
    if (code == 0)
        code = nft_find(gateway, "refused", &key, &refused);
    if (code == ENOENT)
        return 0;
    if (code)
        return error_sys_code(err, code, "count the bytes of the sandbox in slot %u", slot);
    *out = (struct gateway_counters){sent.bytes, sent.packets, refused.bytes, refused.packets};
    return 0;
}

struct found {
    struct gateway *gateway;
    unsigned *slots;
    size_t count;
};

static void add_slot(const struct nft_element *element, void *data)
{
    struct found *found = data;
    int slot = gateway_slot_of(found->gateway, element->address);

    if (slot < 0)
        return;
    found->slots = xrealloc(found->slots, found->count + 1, sizeof *found->slots);
    found->slots[found->count++] = (unsigned)slot;
}

int gateway_sweep(struct gateway *gateway, bool (*is_owned)(unsigned slot, void *data), void *data,
                  struct error *err)
{
    struct found found = {.gateway = gateway};
    int result = 0;

    int code = nft_list(gateway, "class", add_slot, &found);
    if (code)
        result = error_sys_code(err, code, "list what the network has of sandboxes");
    for (size_t i = 0; result == 0 && i < found.count; i++) {
        if (!is_owned(found.slots[i], data))
            result = gateway_dismiss(gateway, found.slots[i], err);
    }
    free(found.slots);
    return result;
}
