"""For Lightning: a base of your LightningModule by which its batches go to the device.

    class Model(Staged, lightning.LightningModule): ...
    stager = faultless.torch.Stager(slots=3)         # Lightning fetches one batch ahead
    model.stager = stager
    trainer.fit(model, DataLoader(data, batch_size=256, collate_fn=stager.collate))"""


class Staged:
    def transfer_batch_to_device(self, batch, device, dataloader_idx):
        return self.stager.push(batch)
