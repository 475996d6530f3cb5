/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For volume*.c only: what a volume is made of, and what each family of schemes provides.
 * Threads: any; as volume.h says.
 */
#pragma once
#include "engine/volume.h"

#include <stddef.h>

struct tmpfs_scratches;

struct volume_names {
    char **names;
    size_t count;
};

struct volume {
    char *data_dir;
    const struct volume_ops *ops;
    enum volume_scheme scheme;
    int dir_fd;                    // the volume's top directory; -1: tmpfs
    int scratch_fd;                // 'scratch' in it; -1: tmpfs
    _Atomic unsigned spares;       // btrfs: slots of spare scratches worth a try, those below this
    bool has_simple_quota;         // btrfs: else full qgroups
    char *fallback_reason;         // or NULL
    struct tmpfs_scratches *tmpfs; // or NULL
};

/* Names are valid when they get here. */
struct volume_ops {
    bool counts_inodes;
    int (*create)(struct volume *volume, const char *name, const struct volume_limits *limits,
                  int *dir_fd, struct error *err);
    int (*open)(struct volume *volume, const char *name, int *dir_fd, struct error *err);
    int (*limit)(struct volume *volume, const char *name, const struct volume_limits *limits,
                 struct error *err);
    int (*usage)(struct volume *volume, const char *name, bool is_exact, uint64_t *bytes,
                 struct error *err);
    int (*remove)(struct volume *volume, const char *name, struct error *err);
    int (*space)(struct volume *volume, struct volume_space *out, struct error *err);
    int (*list)(struct volume *volume, struct volume_names *out, struct error *err);
    int (*fill)(struct volume *volume, unsigned count, struct error *err); // or NULL
    int (*sweep_rest)(struct volume *volume,
                      struct error *err);                    // what belongs to no scratch; or NULL
    int (*settle)(struct volume *volume, struct error *err); // or NULL
    void (*clear)(struct volume *volume);                    // or NULL
    /* Scratch `from` takes the place of `to`, which may be missing, at one instant and for good. */
    int (*replace)(struct volume *volume, const char *from, const char *to, struct error *err);
    const struct volume_layer_ops *layers; // NULL: layers are plain trees, and made by copying
};

/* What layers are where they are more than plain trees. `layers_fd` is the directory they lie in. */
struct volume_layer_ops {
    /* A read-only copy of a whole scratch; *bytes is what it takes. EEXIST is ERROR_CONFLICT. */
    int (*save)(struct volume *volume, const char *scratch, int layers_fd, const char *name,
                uint64_t *bytes, struct error *err);
    /* A new scratch from a layer, limited; `layer_bytes` count as used. */
    int (*branch)(struct volume *volume, int layers_fd, const char *name, uint64_t layer_bytes,
                  const char *scratch, const struct volume_limits *limits, struct error *err);
    /* An empty layer to fill; nothing can be changed in it from `seal` on. */
    int (*make)(int layers_fd, const char *name, struct error *err);
    int (*seal)(int layers_fd, const char *name, struct error *err);
    int (*remove)(struct volume *volume, int layers_fd, const char *name, struct error *err);
    /* When the layer or scratch that `fd` lies in was made, in ns; 0: that is not known. */
    int64_t (*made_at)(int fd);
};

extern const struct volume_ops volume_btrfs_ops;
extern const struct volume_ops volume_project_ops;
extern const struct volume_ops volume_tmpfs_ops;

/* Quotas on, turned on when `may_enable`; sets has_simple_quota. ERROR_UNAVAILABLE when they are
 * off. */
int volume_btrfs_prepare(struct volume *volume, bool may_enable, struct error *err);

/* Accounting and enforcement of project quota are on; ERROR_UNAVAILABLE says how to get them. */
int volume_project_check(int dir_fd, enum volume_scheme scheme, struct error *err);
int volume_project_prepare(struct volume *volume, struct error *err);

/* Turns a new volume into one of memory. */
void volume_tmpfs_init(struct volume *volume);

/* <data>/volume.img: is it there; make it if not and mount it, attached nowhere yet; unmount and
 * free it. */
bool volume_image_exists(int data_fd);
int volume_image_mount(int data_fd, const char *data_dir, const struct volume_options *options,
                       int *mount_fd, struct error *err);
/* Whether what is mounted at <data>/volume is a volume.img, be it removed since. */
bool volume_image_is_mounted(const char *data_dir);
int volume_image_detach(int data_fd, const char *data_dir, bool is_mounted, struct error *err);

bool volume_is_name(const char *name);
void volume_names_add(struct volume_names *names, const char *name);
void volume_names_clear(struct volume_names *names);

/*
 * For the schemes: 'upper' and 'work' in a scratch; and what is the same wherever a scratch is a
 * directory below scratch_fd.
 */
int volume_make_places(int dir_fd, struct error *err);
int volume_list_dirs(struct volume *volume, struct volume_names *out, struct error *err);
int volume_open_scratch_dir(struct volume *volume, const char *name, int *dir_fd,
                            struct error *err);
int volume_fs_space(struct volume *volume, struct volume_space *out, struct error *err);

/* Makes a small scratch and writes past its limit: fails unless the kernel stops that. */
int volume_probe_limit(struct volume *volume, struct error *err);
