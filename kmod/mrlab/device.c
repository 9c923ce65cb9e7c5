// SPDX-License-Identifier: GPL-2.0
/*
 * The device: what it hangs on, what it says of itself, how it comes and goes.
 * Its parent is an edu device if there is one (edu.c), else a platform device,
 * which no IOMMU translates for.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/dma-direct.h>
#include <linux/dma-mapping.h>
#include <linux/iommu.h>
#include <linux/module.h>
#include <linux/platform_device.h>
#include <rdma/ib_mad.h>
#include <rdma/ib_umem.h>
#include <rdma/uverbs_ioctl.h>
#include "lab.h"
#include "mrscope_version.h"

#define CREATE_TRACE_POINTS
#include "trace.h"

static char *parent = "auto";
module_param(parent, charp, 0444);
MODULE_PARM_DESC(parent, "auto (edu if there is one), edu or platform");

static unsigned int dma_bits = 64;
module_param(dma_bits, uint, 0444);
MODULE_PARM_DESC(dma_bits, "how wide a DMA address may be (64)");

/* One entry of a scatter list may be that long, which makes DMA entries few. */
#define MRLAB_MAX_SEGMENT	SZ_2G
#define MRLAB_GUID		0x026d72fffe6c6162ULL
#define MRLAB_VENDOR		0x6d726c	/* not an OUI of anybody */

static atomic_t mrlab_devices = ATOMIC_INIT(0);

/* ---- what it says of itself ---- */

static int mrlab_query_device(struct ib_device *ibdev, struct ib_device_attr *attr,
			      struct ib_udata *udata)
{
	const u32 odp = IB_ODP_SUPPORT_SEND | IB_ODP_SUPPORT_RECV |
			IB_ODP_SUPPORT_WRITE | IB_ODP_SUPPORT_READ |
			IB_ODP_SUPPORT_ATOMIC;

	if (udata && udata->inlen && !ib_is_udata_cleared(udata, 0, udata->inlen))
		return -EINVAL;
	memset(attr, 0, sizeof(*attr));
	attr->sys_image_guid = cpu_to_be64(MRLAB_GUID);
	attr->max_mr_size = MRLAB_MAX_MR_BYTES;
	attr->page_size_cap = PAGE_MASK;
	attr->vendor_id = MRLAB_VENDOR;
	attr->max_qp = MRLAB_MAX_QP;
	attr->max_qp_wr = MRLAB_MAX_WR;
	attr->max_send_sge = MRLAB_MAX_SGE;
	attr->max_recv_sge = MRLAB_MAX_SGE;
	attr->max_sge_rd = MRLAB_MAX_SGE;
	attr->max_cq = MRLAB_MAX_CQ;
	attr->max_cqe = MRLAB_MAX_CQE;
	attr->max_mr = mrlab_max_mr;
	attr->max_pd = MRLAB_MAX_PD;
	attr->max_qp_rd_atom = MRLAB_MAX_RD_ATOMIC;
	attr->max_qp_init_rd_atom = MRLAB_MAX_RD_ATOMIC;
	attr->max_res_rd_atom = MRLAB_MAX_RD_ATOMIC * MRLAB_MAX_QP;
	attr->atomic_cap = IB_ATOMIC_GLOB;
	attr->max_pkeys = 1;
	attr->kernel_cap_flags = IBK_ON_DEMAND_PAGING;
	attr->odp_caps.general_caps = IB_ODP_SUPPORT;
	attr->odp_caps.per_transport_caps.rc_odp_caps = odp;
	attr->odp_caps.per_transport_caps.uc_odp_caps =
		IB_ODP_SUPPORT_SEND | IB_ODP_SUPPORT_RECV | IB_ODP_SUPPORT_WRITE;
	return 0;
}

static int mrlab_query_port(struct ib_device *ibdev, u32 port,
			    struct ib_port_attr *attr)
{
	attr->state = IB_PORT_ACTIVE;
	attr->phys_state = IB_PORT_PHYS_STATE_LINK_UP;
	attr->max_mtu = IB_MTU_4096;
	attr->active_mtu = IB_MTU_4096;
	attr->gid_tbl_len = 2;
	attr->pkey_tbl_len = 1;
	attr->max_msg_sz = MRLAB_MAX_MESSAGE;
	attr->lid = MRLAB_LID;
	attr->sm_lid = MRLAB_LID;
	attr->max_vl_num = 1;
	attr->active_width = IB_WIDTH_4X;
	attr->active_speed = IB_SPEED_EDR;
	return 0;
}

/* No management datagrams, no connection manager: their clients stay away. */
static int mrlab_get_port_immutable(struct ib_device *ibdev, u32 port,
				    struct ib_port_immutable *immutable)
{
	immutable->gid_tbl_len = 2;
	immutable->pkey_tbl_len = 1;
	immutable->core_cap_flags = RDMA_CORE_CAP_PROT_IB;
	return 0;
}

static int mrlab_query_gid(struct ib_device *ibdev, u32 port, int index,
			   union ib_gid *gid)
{
	memset(gid, 0, sizeof(*gid));
	if (!index) {
		gid->global.subnet_prefix = cpu_to_be64(0xfe80ULL << 48);
		gid->global.interface_id = ibdev->node_guid;
	}
	return 0;
}

static int mrlab_query_pkey(struct ib_device *ibdev, u32 port, u16 index,
			    u16 *pkey)
{
	*pkey = IB_DEFAULT_PKEY_FULL;
	return 0;
}

static const struct ib_device_ops mrlab_device_ops = {
	.owner = THIS_MODULE,
	.driver_id = RDMA_DRIVER_UNKNOWN,
	.uverbs_abi_ver = MRLAB_ABI_VERSION,
	.query_device = mrlab_query_device,
	.query_port = mrlab_query_port,
	.query_gid = mrlab_query_gid,
	.query_pkey = mrlab_query_pkey,
	.get_port_immutable = mrlab_get_port_immutable,
};

/* ---- DMA ---- */

/*
 * Where the kernel would bounce, by a buffer that the device reaches, a region
 * would be a copy of the memory it stands for.
 */
static int mrlab_check_dma(struct mrlab_dev *dev)
{
	struct device *device = dev->parent;
	dma_addr_t dma;
	phys_addr_t phys;
	void *page;
	int err = 0;

	if (dma_addressing_limited(device)) {
		dev_err(device, "DMA addresses of %u bits do not reach all memory, and no IOMMU translates: regions would bounce. Use dma_bits=64 or an IOMMU\n",
			dma_bits);
		return -EIO;
	}
	page = (void *)__get_free_page(GFP_KERNEL);
	if (!page)
		return -ENOMEM;
	dma = dma_map_single(device, page, PAGE_SIZE, DMA_BIDIRECTIONAL);
	if (dma_mapping_error(device, dma)) {
		err = -EIO;
	} else {
		phys = dev->domain ? iommu_iova_to_phys(dev->domain, dma) :
				     dma_to_phys(device, dma);
		if (phys != virt_to_phys(page))
			err = -EIO;
		dma_unmap_single(device, dma, PAGE_SIZE, DMA_BIDIRECTIONAL);
	}
	free_page((unsigned long)page);
	if (err)
		dev_err(device, "the kernel bounces this device's DMA (swiotlb=force?): regions would be copies\n");
	return err;
}

static int mrlab_init_dma(struct mrlab_dev *dev)
{
	struct iommu_domain *domain;
	int err;

	err = dma_set_mask_and_coherent(dev->parent, DMA_BIT_MASK(dma_bits));
	if (err) {
		dev_err(dev->parent, "no DMA with addresses of %u bits\n", dma_bits);
		return err;
	}
	dma_set_max_seg_size(dev->parent, MRLAB_MAX_SEGMENT);
	domain = iommu_get_domain_for_dev(dev->parent);
	if (domain && domain->type & __IOMMU_DOMAIN_PAGING)
		dev->domain = domain;
	return mrlab_check_dma(dev);
}

/* ---- how it comes and goes ---- */

static void mrlab_device_destroy(void *data)
{
	struct mrlab_dev *dev = data;

	mrlab_debugfs_remove(dev);
	ib_unregister_device(&dev->ibdev);
	destroy_workqueue(dev->wq);
	mrlab_plates_destroy(dev);
	xa_destroy(&dev->qps);
	xa_destroy(&dev->pds);
	mrlab_keys_destroy(&dev->keys);
	ib_dealloc_device(&dev->ibdev);
	atomic_dec(&mrlab_devices);
}

static void mrlab_set_ops(struct ib_device *ibdev)
{
	ib_set_device_ops(ibdev, &mrlab_device_ops);
	ib_set_device_ops(ibdev, &mrlab_pd_ops);
	ib_set_device_ops(ibdev, &mrlab_mr_ops);
	ib_set_device_ops(ibdev, &mrlab_cq_ops);
	ib_set_device_ops(ibdev, &mrlab_qp_ops);
	ib_set_device_ops(ibdev, &mrlab_post_ops);
	ibdev->uverbs_cmd_mask |= BIT_ULL(IB_USER_VERBS_CMD_POST_SEND) |
				  BIT_ULL(IB_USER_VERBS_CMD_POST_RECV) |
				  BIT_ULL(IB_USER_VERBS_CMD_POLL_CQ) |
				  BIT_ULL(IB_USER_VERBS_CMD_REQ_NOTIFY_CQ);
	ibdev->node_type = RDMA_NODE_IB_CA;
	ibdev->phys_port_cnt = 1;
	ibdev->num_comp_vectors = 1;
	ibdev->node_guid = cpu_to_be64(MRLAB_GUID);
	strscpy(ibdev->node_desc, "mrlab", sizeof(ibdev->node_desc));
}

/* What it makes goes when the driver leaves the parent. */
int mrlab_device_create(struct device *device, struct mrlab_edu *edu)
{
	struct mrlab_dev *dev;
	int err;

	dev = ib_alloc_device(mrlab_dev, ibdev);
	if (!dev)
		return -ENOMEM;
	dev->parent = device;
	dev->edu = edu;
	xa_init_flags(&dev->pds, XA_FLAGS_ALLOC);
	xa_init_flags(&dev->qps, XA_FLAGS_ALLOC);
	xa_init(&dev->plates);
	err = mrlab_init_dma(dev);
	if (err)
		goto err_dealloc;
	err = mrlab_keys_init(&dev->keys);
	if (err)
		goto err_dealloc;
	dev->wq = alloc_workqueue("mrlab", WQ_UNBOUND, 0);
	if (!dev->wq) {
		err = -ENOMEM;
		goto err_keys;
	}
	mrlab_set_ops(&dev->ibdev);
	dev->ibdev.dev.parent = device;
	err = ib_register_device(&dev->ibdev, "mrlab%d", device);
	if (err)
		goto err_wq;
	mrlab_debugfs_create(dev);
	atomic_inc(&mrlab_devices);
	dev_info(device, "%s: %s, %s\n", dev_name(&dev->ibdev.dev),
		 edu ? "on an edu device" : "on a platform device",
		 dev->domain ? "behind an IOMMU" : "DMA addresses are physical");
	return devm_add_action_or_reset(device, mrlab_device_destroy, dev);

err_wq:
	destroy_workqueue(dev->wq);
err_keys:
	mrlab_keys_destroy(&dev->keys);
err_dealloc:
	ib_dealloc_device(&dev->ibdev);
	return err;
}

/* ---- the module ---- */

static int mrlab_platform_probe(struct platform_device *pdev)
{
	/* Such a device has no mask of its own. */
	pdev->dev.dma_mask = &pdev->dev.coherent_dma_mask;
	return mrlab_device_create(&pdev->dev, NULL);
}

static struct platform_driver mrlab_platform_driver = {
	.driver = { .name = "mrlab" },
	.probe = mrlab_platform_probe,
};

static struct platform_device *mrlab_platform_device;

static int mrlab_platform_create(void)
{
	int err;

	err = platform_driver_register(&mrlab_platform_driver);
	if (err)
		return err;
	mrlab_platform_device =
		platform_device_register_simple("mrlab", PLATFORM_DEVID_NONE,
						NULL, 0);
	if (IS_ERR(mrlab_platform_device)) {
		err = PTR_ERR(mrlab_platform_device);
		mrlab_platform_device = NULL;
		platform_driver_unregister(&mrlab_platform_driver);
	}
	return err;
}

static void mrlab_platform_destroy(void)
{
	if (!mrlab_platform_device)
		return;
	platform_device_unregister(mrlab_platform_device);
	platform_driver_unregister(&mrlab_platform_driver);
}

static bool mrlab_wants(const char *kind)
{
	return !strcmp(parent, "auto") || !strcmp(parent, kind);
}

static int mrlab_check_parameters(void)
{
	if (!mrlab_wants("edu") && !mrlab_wants("platform")) {
		pr_err("parent is auto, edu or platform\n");
		return -EINVAL;
	}
	if (dma_bits < 24 || dma_bits > 64) {
		pr_err("dma_bits is from 24 to 64\n");
		return -EINVAL;
	}
	return mrlab_keys_check() ?: mrlab_table_init();
}

static int __init mrlab_init(void)
{
	int err = mrlab_check_parameters();

	if (err)
		return err;
	mrlab_debugfs_init();
	if (mrlab_wants("edu")) {
		err = mrlab_edu_register();
		if (err)
			goto err_debugfs;
	}
	if (mrlab_wants("platform") && !atomic_read(&mrlab_devices)) {
		err = mrlab_platform_create();
		if (err)
			goto err_edu;
	}
	if (atomic_read(&mrlab_devices))
		return 0;
	if (!mrlab_wants("platform"))
		pr_err("no edu device that would do: give QEMU -device edu,dma_mask=0xffffffffffffffff, or use parent=platform\n");
	mrlab_platform_destroy();
	err = -ENODEV;
err_edu:
	if (mrlab_wants("edu"))
		mrlab_edu_unregister();
err_debugfs:
	mrlab_debugfs_exit();
	return err;
}

static void __exit mrlab_exit(void)
{
	mrlab_platform_destroy();
	if (mrlab_wants("edu"))
		mrlab_edu_unregister();
	mrlab_debugfs_exit();
}

module_init(mrlab_init);
module_exit(mrlab_exit);

MODULE_DESCRIPTION("mrlab: an RDMA device whose memory registration can be read");
MODULE_AUTHOR("mrscope authors");
MODULE_LICENSE("GPL");
MODULE_VERSION(MRSCOPE_VERSION);
