// SPDX-License-Identifier: GPL-2.0
/*
 * QEMU's edu device as the parent: a PCI function, so that there is an IOMMU
 * domain where there is an IOMMU, and a bus master that is not a CPU.  It
 * copies between memory and a buffer of its own, 4 KiB, some 100 ms each time.
 */
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/io.h>
#include <linux/pci.h>
#include "lab.h"

#define EDU_VENDOR		0x1234
#define EDU_DEVICE		0x11e8

#define EDU_IDENTIFICATION	0x00
#define EDU_IDENTIFIED(value)	(((value) & 0xffff) == 0x00ed)
#define EDU_DMA_SOURCE		0x80
#define EDU_DMA_TARGET		0x88
#define EDU_DMA_COUNT		0x90
#define EDU_DMA_COMMAND		0x98
#define EDU_DMA_START		BIT(0)
#define EDU_DMA_FROM_BUFFER	BIT(1)
#define EDU_BUFFER		0x40000
/* One byte less than it has: some versions of QEMU die of a whole buffer. */
#define EDU_MOST		4095
#define EDU_POLL_US		1000
#define EDU_TIMEOUT_US		(2 * USEC_PER_SEC)

struct mrlab_edu {
	void __iomem *registers;
	struct mutex lock;	/* one transfer at a time */
};

static int mrlab_edu_transfer(struct mrlab_edu *edu, u64 source, u64 target,
			      size_t length, u64 direction)
{
	unsigned int waited;

	writeq(source, edu->registers + EDU_DMA_SOURCE);
	writeq(target, edu->registers + EDU_DMA_TARGET);
	writeq(length, edu->registers + EDU_DMA_COUNT);
	writeq(EDU_DMA_START | direction, edu->registers + EDU_DMA_COMMAND);
	for (waited = 0; waited < EDU_TIMEOUT_US; waited += EDU_POLL_US) {
		if (!(readq(edu->registers + EDU_DMA_COMMAND) & EDU_DMA_START))
			return 0;
		usleep_range(EDU_POLL_US, 2 * EDU_POLL_US);
	}
	return -ETIMEDOUT;
}

/* From memory to memory, as the device sees it: by DMA addresses. */
int mrlab_edu_copy(struct mrlab_edu *edu, dma_addr_t to, dma_addr_t from,
		   size_t length)
{
	size_t some;
	int err = 0;

	mutex_lock(&edu->lock);
	for (; length && !err; length -= some, to += some, from += some) {
		some = min_t(size_t, length, EDU_MOST);
		err = mrlab_edu_transfer(edu, from, EDU_BUFFER, some, 0) ?:
		      mrlab_edu_transfer(edu, EDU_BUFFER, to, some,
					 EDU_DMA_FROM_BUFFER);
	}
	mutex_unlock(&edu->lock);
	return err;
}

static int mrlab_edu_probe(struct pci_dev *pdev, const struct pci_device_id *id)
{
	struct mrlab_edu *edu;
	u32 identification;
	int err;

	edu = devm_kzalloc(&pdev->dev, sizeof(*edu), GFP_KERNEL);
	if (!edu)
		return -ENOMEM;
	mutex_init(&edu->lock);
	err = pcim_enable_device(pdev);
	if (err)
		return err;
	edu->registers = pcim_iomap(pdev, 0, 0);
	if (!edu->registers)
		return -ENOMEM;
	identification = readl(edu->registers + EDU_IDENTIFICATION);
	if (!EDU_IDENTIFIED(identification)) {
		dev_err(&pdev->dev, "no edu device: identification 0x%x\n",
			identification);
		return -ENODEV;
	}
	pci_set_master(pdev);
	return mrlab_device_create(&pdev->dev, edu);
}

static const struct pci_device_id mrlab_edu_ids[] = {
	{ PCI_DEVICE(EDU_VENDOR, EDU_DEVICE) },
	{ }
};
MODULE_DEVICE_TABLE(pci, mrlab_edu_ids);

/* What there is goes by devres: there is nothing to remove. */
static struct pci_driver mrlab_edu_driver = {
	.name = "mrlab",
	.id_table = mrlab_edu_ids,
	.probe = mrlab_edu_probe,
};

int mrlab_edu_register(void)
{
	return pci_register_driver(&mrlab_edu_driver);
}

void mrlab_edu_unregister(void)
{
	pci_unregister_driver(&mrlab_edu_driver);
}
