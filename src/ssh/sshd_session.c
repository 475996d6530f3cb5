/* SPDX-License-Identifier: Apache-2.0 */
/* Logging in, and what clients of SSH ask for; see sshd.h. */
#include "ssh/sshd.h"

#include "base/auto.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOGIN_MS 60000
// libssh lets a client send more than it was told it may; who has so much waiting has no interest in the protocol. The window is 1.25 MiB.
#define HELD_MOST (4 << 20)

// No finite-field groups, which cost the server far more than the client; nothing with SHA-1, CBC or DSA.
#define EXCHANGES                                                                                  \
    "curve25519-sha256,curve25519-sha256@libssh.org,ecdh-sha2-nistp256,ecdh-sha2-nistp384"
#define CIPHERS                                                                                    \
    "aes128-gcm@openssh.com,aes256-gcm@openssh.com,chacha20-poly1305@openssh.com,aes256-ctr,"      \
    "aes128-ctr"
#define CODES                                                                                      \
    "hmac-sha2-256-etm@openssh.com,hmac-sha2-512-etm@openssh.com,hmac-sha2-256,hmac-sha2-512"
#define HOST_KEYS "ssh-ed25519,ecdsa-sha2-nistp256"
#define USER_KEYS                                                                                  \
    "ssh-ed25519,ecdsa-sha2-nistp256,ecdsa-sha2-nistp384,ecdsa-sha2-nistp521,rsa-sha2-512,"        \
    "rsa-sha2-256,sk-ssh-ed25519@openssh.com,sk-ecdsa-sha2-nistp256@openssh.com"

/* Names of variables that a client may set; a star stands for any rest. */
static const char *const allowed_variables[] = {"LANG",     "LC_*",       "COLORTERM",
                                                "NO_COLOR", "TERM_PROG*", "GIT_PROTOCOL"};

// ---- logging in ----

static int ask(struct sshd *sshd, struct ssh_wire_login *login, const char *user)
{
    size_t length = strlen(user);

    if (length >= sizeof login->user) // no sandbox is called so
        length = 0;
    memcpy(login->user, user, length);
    sshd_tell(SSH_WIRE_LOGIN, 0, 0, login, sizeof *login);
    if (!sshd_await(sshd, 0, SSH_WIRE_ANSWER, SSH_WIRE_ANSWER, LOGIN_MS))
        return SSH_AUTH_DENIED;
    bool is_allowed = sshd->message->header.value == 1;
    ssh_wire_message_clear(sshd->message);
    return is_allowed ? SSH_AUTH_SUCCESS : SSH_AUTH_DENIED;
}

static int count_try(struct sshd *sshd, int result)
{
    if (result == SSH_AUTH_SUCCESS)
        return result;
    if (sshd->tries <= 1)
        sshd->is_over = true;
    else
        sshd->tries--;
    return SSH_AUTH_DENIED;
}

static int on_key(ssh_session session, const char *user, struct ssh_key_struct *key,
                  char signature_state, void *data)
{
    struct sshd *sshd = data;
    struct ssh_wire_login login = {.is_signed = signature_state == SSH_PUBLICKEY_STATE_VALID};
    unsigned char *hash = NULL;
    size_t length = 0;

    (void)session;
    if (sshd->is_over || sshd->is_in)
        return SSH_AUTH_DENIED;
    if (signature_state != SSH_PUBLICKEY_STATE_VALID && signature_state != SSH_PUBLICKEY_STATE_NONE)
        return count_try(sshd, SSH_AUTH_DENIED);
    if (ssh_get_publickey_hash(key, SSH_PUBLICKEY_HASH_SHA256, &hash, &length) < 0 ||
        length != sizeof login.hash) {
        ssh_clean_pubkey_hash(&hash);
        return count_try(sshd, SSH_AUTH_DENIED);
    }
    memcpy(login.hash, hash, sizeof login.hash);
    ssh_clean_pubkey_hash(&hash);
    int result = count_try(sshd, ask(sshd, &login, user));
    sshd->is_in = result == SSH_AUTH_SUCCESS && login.is_signed;
    return result;
}

/* Every client asks for this first, to hear what else there is. */
static int on_none(ssh_session session, const char *user, void *data)
{
    struct sshd *sshd = data;
    struct ssh_wire_login login = {.has_none = 1};

    (void)session;
    if (!sshd->is_trusted || sshd->is_over || sshd->is_in)
        return SSH_AUTH_DENIED;
    int result = count_try(sshd, ask(sshd, &login, user));
    sshd->is_in = result == SSH_AUTH_SUCCESS;
    return result;
}

// ---- channels ----

static int on_terminal(ssh_session session, ssh_channel channel, const char *kind, int width,
                       int height, int px_width, int px_height, void *data)
{
    struct line *line = data;

    (void)session, (void)channel, (void)px_width, (void)px_height;
    if (line->is_asked || width < 0 || height < 0)
        return -1;
    line->has_terminal = true;
    line->size = (struct ssh_wire_size){(uint16_t)(height > 4096 ? 4096 : height),
                                        (uint16_t)(width > 4096 ? 4096 : width)};
    (void)snprintf(line->kind, sizeof line->kind, "%s", kind);
    return 0;
}

static int on_resize(ssh_session session, ssh_channel channel, int width, int height, int px_width,
                     int px_height, void *data)
{
    struct line *line = data;

    (void)session, (void)channel, (void)px_width, (void)px_height;
    if (!line->has_terminal || width <= 0 || height <= 0 || width > 4096 || height > 4096)
        return -1;
    line->size = (struct ssh_wire_size){(uint16_t)height, (uint16_t)width};
    if (line->is_started)
        sshd_tell(SSH_WIRE_RESIZE, line->number, 0, &line->size, sizeof line->size);
    return 0;
}

static bool is_variable_allowed(const char *name)
{
    for (size_t i = 0; i < ARRAY_SIZE(allowed_variables); i++) {
        const char *pattern = allowed_variables[i];
        size_t length = strcspn(pattern, "*");
        if (strncmp(name, pattern, length) == 0 && (pattern[length] == '*' || !name[length]))
            return strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") == strlen(name);
    }
    return false;
}

static int on_variable(ssh_session session, ssh_channel channel, const char *name,
                       const char *value, void *data)
{
    struct line *line = data;
    char text[SSHD_TEXT];

    (void)session, (void)channel;
    if (line->is_asked || line->n_variables == SSHD_VARIABLES || !is_variable_allowed(name) ||
        snprintf(text, sizeof text, "%s=%s", name, value) >= (int)sizeof text)
        return -1;
    line->variables[line->n_variables] = strdup(text);
    line->n_variables += line->variables[line->n_variables] != NULL;
    return 0;
}

static size_t add_string(char *to, size_t at, const char *text)
{
    size_t length = strlen(text) + 1;

    memcpy(to + at, text, length);
    return at + length;
}

/* Room: SSHD_COMMAND + SSHD_VARIABLES * SSHD_TEXT + 64 is less than SSH_WIRE_PAYLOAD. */
static int start(struct line *line, enum ssh_wire_program program, const char *command)
{
    static char payload[SSH_WIRE_PAYLOAD + 1];
    struct ssh_wire_start request = {
        .program = program,
        .has_terminal = line->has_terminal && program != SSH_WIRE_SFTP,
        .has_agent = line->wants_agent && program != SSH_WIRE_SFTP,
        .rows = line->size.rows,
        .cols = line->size.cols,
        .n_strings = 2 + line->n_variables,
    };
    size_t length = sizeof request;

    if (line->is_asked || line->is_forward || strlen(command) >= SSHD_COMMAND)
        return -1;
    line->is_asked = true;
    line->has_terminal = request.has_terminal;
    memcpy(payload, &request, sizeof request);
    length = add_string(payload, length, line->kind);
    length = add_string(payload, length, command);
    for (unsigned i = 0; i < line->n_variables; i++)
        length = add_string(payload, length, line->variables[i]);
    sshd_tell(SSH_WIRE_START, line->number, 0, payload, length);
    return 0;
}

static int on_shell(ssh_session session, ssh_channel channel, void *data)
{
    (void)session, (void)channel;
    return start(data, SSH_WIRE_SHELL, "");
}

static int on_command(ssh_session session, ssh_channel channel, const char *command, void *data)
{
    (void)session, (void)channel;
    return start(data, SSH_WIRE_COMMAND, command);
}

static int on_subsystem(ssh_session session, ssh_channel channel, const char *name, void *data)
{
    (void)session, (void)channel;
    return strcmp(name, "sftp") == 0 ? start(data, SSH_WIRE_SFTP, "") : -1;
}

static void on_agent(ssh_session session, ssh_channel channel, void *data)
{
    struct line *line = data;

    (void)session, (void)channel;
    line->wants_agent = line->sshd->allows & SSH_WIRE_ALLOWS_AGENT;
    if (!line->wants_agent)
        sshd_explain(line->sshd, "agent forwarding (-A) is off on this server; its operator may "
                                 "allow it by --ssh-allow agent");
}

static void on_signal(ssh_session session, ssh_channel channel, const char *name, void *data)
{
    static const struct {
        const char *name;
        uint32_t number;
    } signals[] = {{"ABRT", 6},  {"ALRM", 14}, {"HUP", 1},   {"INT", 2},
                   {"KILL", 9},  {"QUIT", 3},  {"TERM", 15}, {"USR1", 10},
                   {"USR2", 12}, {"CONT", 18}, {"STOP", 19}, {"TSTP", 20}};
    const struct line *line = data;

    (void)session, (void)channel;
    for (size_t i = 0; i < ARRAY_SIZE(signals) && line->is_started; i++) {
        if (strcmp(name, signals[i].name) == 0)
            sshd_tell(SSH_WIRE_SIGNAL, line->number, signals[i].number, NULL, 0);
    }
}

static int on_data(ssh_session session, ssh_channel channel, void *bytes, uint32_t length,
                   int is_error, void *data)
{
    struct line *line = data;

    (void)session, (void)channel;
    if (is_error)
        return (int)length; // clients send no errors
    int took = line_take(line, bytes, length);
    line->sshd->is_over |= length - (uint32_t)took > HELD_MOST;
    return took;
}

static void on_eof(ssh_session session, ssh_channel channel, void *data)
{
    struct line *line = data;

    (void)session, (void)channel;
    line->is_remote_eof = true;
    line_end_input(line);
}

static void on_close(ssh_session session, ssh_channel channel, void *data)
{
    struct line *line = data;

    (void)session, (void)channel;
    line->is_closed = true;
}

void line_set_callbacks(struct line *line)
{
    line->callbacks = (struct ssh_channel_callbacks_struct){
        .userdata = line,
        .channel_data_function = on_data,
        .channel_eof_function = on_eof,
        .channel_close_function = on_close,
        .channel_signal_function = on_signal,
        .channel_pty_request_function = on_terminal,
        .channel_shell_request_function = on_shell,
        .channel_pty_window_change_function = on_resize,
        .channel_exec_request_function = on_command,
        .channel_env_request_function = on_variable,
        .channel_subsystem_request_function = on_subsystem,
        .channel_auth_agent_req_function = on_agent,
    };
    ssh_callbacks_init(&line->callbacks);
    (void)ssh_set_channel_callbacks(line->channel, &line->callbacks);
}

static ssh_channel on_open(ssh_session session, void *data)
{
    struct sshd *sshd = data;

    if (!sshd->is_in)
        return NULL;
    struct line *line = line_new(sshd);
    if (!line)
        return NULL;
    line->channel = ssh_channel_new(session);
    if (!line->channel) {
        line->is_closed = true;
        return NULL;
    }
    line_set_callbacks(line);
    return line->channel;
}

// ---- forwarding ----

void sshd_explain(struct sshd *sshd, const char *why)
{
    char text[1100] = "burrow: ";

    (void)strncat(text, why, sizeof text - 16);
    (void)ssh_send_debug(sshd->session, text, 1);
}

/* What has no callback of its own: refused, but for forwards. */
static int on_message(ssh_session session, ssh_message message, void *data)
{
    (void)session;
    if (ssh_message_type(message) == SSH_REQUEST_GLOBAL)
        return listen_ask(data, message);
    if (ssh_message_type(message) == SSH_REQUEST_CHANNEL_OPEN &&
        ssh_message_subtype(message) == SSH_CHANNEL_DIRECT_TCPIP)
        return forward_ask(data, message);
    return 1;
}

// ---- beginning ----

static int import(struct sshd *sshd, const char *text, size_t length)
{
    ssh_key key = NULL;
    char *pem = strndup(text, length);
    int result = -1;

    if (pem && ssh_pki_import_privkey_base64(pem, NULL, NULL, NULL, &key) == SSH_OK)
        result = ssh_bind_options_set(sshd->bind, SSH_BIND_OPTIONS_IMPORT_KEY, key);
    if (pem)
        explicit_bzero(pem, length);
    free(pem);
    return result;
}

static int set_options(struct sshd *sshd)
{
    static const struct {
        enum ssh_bind_options_e option;
        const char *value;
    } options[] = {
        {SSH_BIND_OPTIONS_BANNER, "burrow"},
        {SSH_BIND_OPTIONS_KEY_EXCHANGE, EXCHANGES},
        {SSH_BIND_OPTIONS_CIPHERS_C_S, CIPHERS},
        {SSH_BIND_OPTIONS_CIPHERS_S_C, CIPHERS},
        {SSH_BIND_OPTIONS_HMAC_C_S, CODES},
        {SSH_BIND_OPTIONS_HMAC_S_C, CODES},
        {SSH_BIND_OPTIONS_HOSTKEY_ALGORITHMS, HOST_KEYS},
        {SSH_BIND_OPTIONS_PUBKEY_ACCEPTED_KEY_TYPES, USER_KEYS},
    };
    bool has_files = false;

    if (ssh_bind_options_set(sshd->bind, SSH_BIND_OPTIONS_PROCESS_CONFIG, &has_files) < 0)
        return -1;
    for (size_t i = 0; i < ARRAY_SIZE(options); i++) {
        if (ssh_bind_options_set(sshd->bind, options[i].option, options[i].value) < 0)
            return -1;
    }
    return 0;
}

int sshd_begin(struct sshd *sshd, const struct ssh_wire_message *message, int fd)
{
    struct ssh_wire_begin begin;
    const char *keys = message->payload + sizeof begin;

    memcpy(&begin, message->payload, sizeof begin);
    sshd->is_trusted = begin.is_trusted;
    sshd->tries = begin.tries;
    sshd->allows = begin.allows;
    sshd->bind = ssh_bind_new();
    sshd->session = ssh_new();
    if (!sshd->bind || !sshd->session || set_options(sshd) < 0 ||
        import(sshd, keys, begin.keys[0]) < 0 ||
        import(sshd, keys + begin.keys[0], begin.keys[1]) < 0)
        return -1;
    sshd_read_ahead(fd);
    if (ssh_bind_accept_fd(sshd->bind, sshd->session, fd) != SSH_OK)
        return -1;
    sshd->callbacks = (struct ssh_server_callbacks_struct){
        .userdata = sshd,
        .auth_none_function = on_none,
        .auth_pubkey_function = on_key,
        .channel_open_request_session_function = on_open,
    };
    ssh_callbacks_init(&sshd->callbacks);
    (void)ssh_set_server_callbacks(sshd->session, &sshd->callbacks);
    ssh_set_message_callback(sshd->session, on_message, sshd);
    ssh_set_auth_methods(sshd->session, SSH_AUTH_METHOD_PUBLICKEY);
    ssh_set_blocking(sshd->session, 0);
    return 0;
}
