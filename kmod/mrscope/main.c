// SPDX-License-Identifier: GPL-2.0
/*
 * mrscope: a microscope for RDMA memory registration.
 *
 * Watches the registration of memory on every RDMA device, through probes on
 * function entries and returns.  Owns no device and writes nobody's data.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>

#include "observer.h"

static bool enabled = true;
module_param(enabled, bool, 0400);
MODULE_PARM_DESC(enabled, "observe from the start (default: yes)");

module_param_named(keys, mrs_keys, bool, 0600);
MODULE_PARM_DESC(keys, "publish whole keys, not their index alone (default: no)");

static int mrs_client_add(struct ib_device *dev)
{
	int err = 0;

	mutex_lock(&mrs_lock);
	if (!mrs_device_add(dev))
		pr_warn("too many devices: %s has no statistics\n",
			dev_name(&dev->dev));
	err = mrs_boundary_add_driver(dev);
	mutex_unlock(&mrs_lock);
	if (err)
		pr_warn("%s: not observed (error %d)\n", dev_name(&dev->dev),
			err);
	/* The device is none the worse for not being observed. */
	return 0;
}

/*
 * Nothing is disarmed here: clients are removed newest first, and what is
 * still registered is deregistered after that.  The driver's probes go with
 * its module.
 */
static void mrs_client_remove(struct ib_device *dev, void *data)
{
	mutex_lock(&mrs_lock);
	mrs_device_gone(dev);
	mutex_unlock(&mrs_lock);
}

static void mrs_client_rename(struct ib_device *dev, void *data)
{
	mutex_lock(&mrs_lock);
	mrs_device_rename(dev);
	mutex_unlock(&mrs_lock);
}

static struct ib_client mrs_client = {
	.name = "mrscope",
	.add = mrs_client_add,
	.remove = mrs_client_remove,
	.rename = mrs_client_rename,
	/* Also those that only user space can use: efa, usnic, mrlab. */
	.no_kverbs_req = true,
};

static int mrs_module_event(struct notifier_block *nb, unsigned long event,
			    void *data)
{
	mutex_lock(&mrs_lock);
	if (event == MODULE_STATE_LIVE)
		mrs_boundary_update();
	else if (event == MODULE_STATE_GOING)
		mrs_boundary_module_gone(data);
	mutex_unlock(&mrs_lock);
	return NOTIFY_OK;
}

static struct notifier_block mrs_module_nb = {
	.notifier_call = mrs_module_event,
	.priority = 1,	/* before kprobes' own, which marks our probes dead */
};

static void mrs_change_enabled(const void *arg)
{
	mrs_enabled = *(const bool *)arg;
}

static int __init mrs_init(void)
{
	int err;

	err = mrs_context_init();
	if (err)
		return err;
	err = mrs_record_init();
	if (err)
		goto context;
	err = mrs_stats_init();
	if (err)
		goto record;
	err = mrs_boundary_init();
	if (err)
		goto stats;

	mutex_lock(&mrs_lock);
	mrs_calibrate();
	mrs_stats_reset();
	mrs_record_reset();
	mutex_unlock(&mrs_lock);

	err = register_module_notifier(&mrs_module_nb);
	if (err)
		goto boundary;
	err = ib_register_client(&mrs_client);
	if (err)
		goto notifier;
	err = mrs_debugfs_init();
	if (err)
		goto client;
	mrs_reconfigure(mrs_change_enabled, &enabled);
	return 0;

client:
	ib_unregister_client(&mrs_client);
notifier:
	unregister_module_notifier(&mrs_module_nb);
boundary:
	mrs_boundary_exit();
stats:
	mrs_stats_exit();
record:
	mrs_record_exit();
context:
	mrs_context_exit();
	return err;
}

static void __exit mrs_exit(void)
{
	mrs_debugfs_exit();
	ib_unregister_client(&mrs_client);
	unregister_module_notifier(&mrs_module_nb);
	mrs_boundary_exit();
	mrs_stats_exit();
	mrs_record_exit();
	mrs_context_exit();
}

module_init(mrs_init);
module_exit(mrs_exit);

MODULE_DESCRIPTION("Observer of RDMA memory registration");
MODULE_AUTHOR("mrscope authors");
MODULE_LICENSE("GPL");
MODULE_VERSION(MRSCOPE_VERSION);
