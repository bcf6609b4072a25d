"""For Lightning: a base of your LightningModule by which its batches go to the device.

    class Model(Staged, lightning.LightningModule): ...
    trainer.fit(model, DataLoader(data, batch_size=256, num_workers=8))"""
import faultless.torch


class Staged:
    stager = None  # of this rank's device, which is known when the first batch comes

    def transfer_batch_to_device(self, batch, device, dataloader_idx):
        if self.stager is None or self.stager.device != device:
            self.stager = faultless.torch.Stager(device, slots=3)  # Lightning fetches one batch ahead
        return self.stager.push(batch)
