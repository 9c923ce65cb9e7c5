// SPDX-License-Identifier: GPL-2.0
/*
 * /sys/kernel/debug/mrscope: what people and scripts read, and the switches.
 * An open file holds the module, so that rmmod says "in use" meanwhile.
 */
#include <linux/debugfs.h>
#include <linux/module.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/uaccess.h>

#include "observer.h"

static struct dentry *mrs_dir;

/* ---- files to read ---- */

static int mrs_status_show(struct seq_file *m, void *unused)
{
	mutex_lock(&mrs_lock);
	seq_printf(m, "mrscope %s\n", MRSCOPE_VERSION);
	seq_printf(m, "enabled %d\n", mrs_enabled);
	seq_printf(m, "deep %d\n", mrs_deep);
	seq_printf(m, "keys %d\n", mrs_keys);
	seq_printf(m, "clock %s\n",
		   mrs_cycles ? "cycles scaled to CLOCK_MONOTONIC" : "mono_fast");
	seq_printf(m, "records %llu\n", mrs_record_count());
	seq_printf(m, "lost %llu\n", mrs_context_lost() + mrs_roots_missed());
	seq_printf(m, "contexts %u %u\n", mrs_context_in_flight(),
		   mrs_context_capacity());
	seq_printf(m, "filter_tgid %llu\n", mrs_filter.tgid);
	seq_printf(m, "filter_min_ns %llu\n", mrs_filter.min_ns);
	seq_printf(m, "filter_device %s\n", mrs_filter.device[0] ?
		   mrs_filter.device : "-");
	seq_printf(m, "outside_umems %llu\n", mrs_outside_umems());
	seq_printf(m, "probe_cost entry %llu pair %llu record %llu\n",
		   mrs_cost.entry_ns, mrs_cost.pair_ns, mrs_cost.record_ns);
	mrs_devices_show(m);
	mrs_boundary_show(m);
	mutex_unlock(&mrs_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(mrs_status);

static int mrs_stats_file_show(struct seq_file *m, void *unused)
{
	mutex_lock(&mrs_lock);
	mrs_stats_show(m);
	mutex_unlock(&mrs_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(mrs_stats_file);

static int mrs_histogram_file_show(struct seq_file *m, void *unused)
{
	mutex_lock(&mrs_lock);
	mrs_histogram_show(m);
	mutex_unlock(&mrs_lock);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(mrs_histogram_file);

static void mrs_last_show_one(const struct mrs_record *r, void *arg)
{
	static const char *const ops[] = { MRSCOPE_OP_NAMES };
	static const char *const entries[] = { MRSCOPE_ENTRY_NAMES };
	struct seq_file *m = arg;
	u32 s;

	seq_printf(m, "%llu %s %s %s ret %d ", r->seq,
		   r->dev ? mrs_device_name(r->dev) : "unknown", ops[r->op],
		   entries[r->entry], r->ret);
	if (r->failed_stage >= 0)
		seq_printf(m, "in %s ", mrs_stage_name(r->op, r->failed_stage));
	if (r->flags & MRSCOPE_F_ADDR)
		seq_printf(m, "addr 0x%llx ", r->addr);
	seq_printf(m, "length %llu total_ns %llu", r->length, r->total_ns);
	for (s = 0; s < mrs_stage_count(r->op); s++) {
		if (r->observed & BIT(s))
			seq_printf(m, " %s %llu", mrs_stage_name(r->op, s),
				   r->ns[s]);
		else
			seq_printf(m, " %s %s", mrs_stage_name(r->op, s),
				   r->merged & BIT(s) ? "merged" : "null");
	}
	if (r->flags & MRSCOPE_F_UMEM)
		seq_printf(m, " pages %llu", r->pages);
	if (r->flags & MRSCOPE_F_SG)
		seq_printf(m, " sg_entries %u", r->sg_entries);
	if (r->op != MRSCOPE_OP_DEREG)
		seq_printf(m, " faults %u/%u", r->faults_minor,
			   r->faults_major);
	if (r->flags & MRSCOPE_F_LKEY)
		seq_printf(m, " lkey_index 0x%x", r->lkey >> 8);
	seq_printf(m, " tgid %d tid %d comm %s", r->tgid, r->tid, r->comm);
	if (r->flags & MRSCOPE_F_OWNER)
		seq_printf(m, " owner %d %s", r->owner_tgid, r->owner_comm);
	if (r->flags & MRSCOPE_F_INCOMPLETE)
		seq_puts(m, " incomplete");
	seq_putc(m, '\n');
}

static int mrs_last_show(struct seq_file *m, void *unused)
{
	mrs_record_for_each(mrs_last_show_one, m);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(mrs_last);

static int mrs_selftest_show(struct seq_file *m, void *unused)
{
	char why[128];

	mrs_selftest(why, sizeof(why));
	seq_printf(m, "%s\n", why);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(mrs_selftest);

/* ---- switches ---- */

struct mrs_switch {
	bool *which;
	bool value;
};

static void mrs_change_switch(const void *arg)
{
	const struct mrs_switch *c = arg;

	*c->which = c->value;
}

static ssize_t mrs_switch_read(struct file *file, char __user *buf,
			       size_t len, loff_t *pos)
{
	bool *which = file->private_data;
	char text[2] = { *which ? '1' : '0', '\n' };

	return simple_read_from_buffer(buf, len, pos, text, sizeof(text));
}

/* More than all names of boundaries. */
#define MRS_MOST_TEXT	512

/* What was written, whole: nothing cut off, nor hidden behind a zero byte. */
static char *mrs_text_from_user(const char __user *buf, size_t len)
{
	char *text;

	if (len > MRS_MOST_TEXT)
		return ERR_PTR(-EINVAL);
	text = memdup_user_nul(buf, len);
	if (!IS_ERR(text) && strlen(text) != len) {
		kfree(text);
		return ERR_PTR(-EINVAL);
	}
	return text;
}

static int mrs_number_from_user(const char __user *buf, size_t len, u64 most,
				u64 *value)
{
	char *text = mrs_text_from_user(buf, len);
	int err;

	if (IS_ERR(text))
		return PTR_ERR(text);
	err = kstrtou64(text, 10, value);
	kfree(text);
	return err || *value > most ? -EINVAL : 0;
}

static int mrs_bool_from_user(const char __user *buf, size_t len, bool *value)
{
	u64 number;
	int err = mrs_number_from_user(buf, len, 1, &number);

	if (!err)
		*value = number;
	return err;
}

static ssize_t mrs_switch_write(struct file *file, const char __user *buf,
				size_t len, loff_t *pos)
{
	struct mrs_switch c = { .which = file->private_data };
	int err;

	err = mrs_bool_from_user(buf, len, &c.value);
	if (err)
		return err;
	if (*c.which != c.value)
		mrs_reconfigure(mrs_change_switch, &c);
	return len;
}

static const struct file_operations mrs_switch_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.read = mrs_switch_read,
	.write = mrs_switch_write,
};

static int mrs_disarm_show(struct seq_file *m, void *unused)
{
	const char *sep = "";
	unsigned int b;

	for_each_set_bit(b, &mrs_disarmed, MRS_BOUNDARIES) {
		seq_printf(m, "%s%s", sep, mrs_boundary_name(b));
		sep = ",";
	}
	seq_putc(m, '\n');
	return 0;
}

static int mrs_disarm_open(struct inode *inode, struct file *file)
{
	return single_open(file, mrs_disarm_show, NULL);
}

static void mrs_change_disarmed(const void *arg)
{
	mrs_disarmed = *(const unsigned long *)arg;
}

/* Boundaries to keep unarmed, separated by commas; an empty line: none. */
static ssize_t mrs_disarm_write(struct file *file, const char __user *buf,
				size_t len, loff_t *pos)
{
	unsigned long disarmed = 0;
	char *text, *rest, *name;
	ssize_t ret = len;
	int b;

	text = mrs_text_from_user(buf, len);
	if (IS_ERR(text))
		return PTR_ERR(text);
	rest = text;
	while ((name = strsep(&rest, ",\n"))) {
		if (!*name)
			continue;
		b = mrs_boundary_find(name);
		if (b < 0) {
			ret = -EINVAL;
			goto free;
		}
		disarmed |= BIT(b);
	}
	mrs_reconfigure(mrs_change_disarmed, &disarmed);
free:
	kfree(text);
	return ret;
}

static const struct file_operations mrs_disarm_fops = {
	.owner = THIS_MODULE,
	.open = mrs_disarm_open,
	.read = seq_read,
	.llseek = seq_lseek,
	.release = single_release,
	.write = mrs_disarm_write,
};

static ssize_t mrs_reset_write(struct file *file, const char __user *buf,
			       size_t len, loff_t *pos)
{
	bool yes;
	int err;

	err = mrs_bool_from_user(buf, len, &yes);
	if (err || !yes)
		return err ?: -EINVAL;
	mutex_lock(&mrs_lock);
	mrs_stats_reset();
	mrs_record_reset();
	mutex_unlock(&mrs_lock);
	return len;
}

static const struct file_operations mrs_reset_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.write = mrs_reset_write,
};

/* ---- filters: what is published; statistics count everything ---- */

static int mrs_device_filter_show(struct seq_file *m, void *unused)
{
	seq_printf(m, "%s\n", mrs_filter.device);
	return 0;
}

static int mrs_device_filter_open(struct inode *inode, struct file *file)
{
	return single_open(file, mrs_device_filter_show, NULL);
}

static ssize_t mrs_device_filter_write(struct file *file,
				       const char __user *buf, size_t len,
				       loff_t *pos)
{
	char *text = mrs_text_from_user(buf, len);
	ssize_t ret = len;
	char *name;

	if (IS_ERR(text))
		return PTR_ERR(text);
	name = strim(text);
	mutex_lock(&mrs_lock);
	/* A wrong name would silently leave everything out. */
	if (*name && !mrs_device_named(name))
		ret = -EINVAL;
	else
		strscpy(mrs_filter.device, name, sizeof(mrs_filter.device));
	mutex_unlock(&mrs_lock);
	kfree(text);
	return ret;
}

static const struct file_operations mrs_device_filter_fops = {
	.owner = THIS_MODULE,
	.open = mrs_device_filter_open,
	.read = seq_read,
	.llseek = seq_lseek,
	.release = single_release,
	.write = mrs_device_filter_write,
};

/* A number, and the largest that makes sense. */
struct mrs_number {
	u64 *value;
	u64 most;
};

static struct mrs_number mrs_filter_tgid = { &mrs_filter.tgid, S32_MAX };
static struct mrs_number mrs_filter_min_ns = { &mrs_filter.min_ns, U64_MAX };

static ssize_t mrs_number_read(struct file *file, char __user *buf, size_t len,
			       loff_t *pos)
{
	const struct mrs_number *number = file->private_data;
	char text[24];
	int n = scnprintf(text, sizeof(text), "%llu\n", READ_ONCE(*number->value));

	return simple_read_from_buffer(buf, len, pos, text, n);
}

static ssize_t mrs_number_write(struct file *file, const char __user *buf,
				size_t len, loff_t *pos)
{
	const struct mrs_number *number = file->private_data;
	u64 value;
	int err = mrs_number_from_user(buf, len, number->most, &value);

	if (err)
		return err;
	WRITE_ONCE(*number->value, value);
	return len;
}

static const struct file_operations mrs_number_fops = {
	.owner = THIS_MODULE,
	.open = simple_open,
	.read = mrs_number_read,
	.write = mrs_number_write,
};

int mrs_debugfs_init(void)
{
	mrs_dir = debugfs_create_dir("mrscope", NULL);
	if (IS_ERR(mrs_dir))
		return PTR_ERR(mrs_dir);

	debugfs_create_file("status", 0400, mrs_dir, NULL, &mrs_status_fops);
	debugfs_create_file("stats", 0400, mrs_dir, NULL,
			    &mrs_stats_file_fops);
	debugfs_create_file("histogram", 0400, mrs_dir, NULL,
			    &mrs_histogram_file_fops);
	debugfs_create_file("last", 0400, mrs_dir, NULL, &mrs_last_fops);
	debugfs_create_file("selftest", 0400, mrs_dir, NULL,
			    &mrs_selftest_fops);
	debugfs_create_file("enabled", 0600, mrs_dir, &mrs_enabled,
			    &mrs_switch_fops);
	debugfs_create_file("deep", 0600, mrs_dir, &mrs_deep,
			    &mrs_switch_fops);
	debugfs_create_file("disarm", 0600, mrs_dir, NULL, &mrs_disarm_fops);
	debugfs_create_file("reset", 0200, mrs_dir, NULL, &mrs_reset_fops);
	debugfs_create_file("filter_tgid", 0600, mrs_dir, &mrs_filter_tgid,
			    &mrs_number_fops);
	debugfs_create_file("filter_min_ns", 0600, mrs_dir, &mrs_filter_min_ns,
			    &mrs_number_fops);
	debugfs_create_file("filter_device", 0600, mrs_dir, NULL,
			    &mrs_device_filter_fops);
	return 0;
}

void mrs_debugfs_exit(void)
{
	debugfs_remove_recursive(mrs_dir);
}
