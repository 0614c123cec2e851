"""The transformer of Liu et al. (2022) from ``torch.nn``'s own layers: the oracle of its exactness test."""

from torch import nn


class PlainEncoder(nn.Module):
    def __init__(self, model, params):
        super().__init__()
        kind = {"dtype": params["W_E"].dtype}
        self.W_E = nn.Parameter(params["W_E"].clone())
        self.blocks = nn.ModuleList(
            nn.TransformerEncoderLayer(
                model.d_model, 1, model.hidden, model.dropout, batch_first=True, norm_first=True, **kind
            )
            for _ in range(model.layers)
        )
        self.readout = nn.Linear(2 * model.d_model, model.p, **kind)
        for name, parameter in self.named().items():
            parameter.data.copy_(params[name])

    def forward(self, pairs):
        x = self.W_E[pairs]
        for block in self.blocks:
            x = block(x)
        return self.readout(x.flatten(1))

    def named(self):
        """Parameters by the names that the package uses."""
        found = {"W_E": self.W_E, "W_U": self.readout.weight, "b_U": self.readout.bias}
        for i, block in enumerate(self.blocks):
            attention = block.self_attn
            found |= {f"W_QKV_{i}": attention.in_proj_weight, f"b_QKV_{i}": attention.in_proj_bias}
            layers = {"O": attention.out_proj, "in": block.linear1, "out": block.linear2}
            for name, layer in layers.items():
                found |= {f"W_{name}_{i}": layer.weight, f"b_{name}_{i}": layer.bias}
            for name, norm in (("1", block.norm1), ("2", block.norm2)):
                found |= {f"g{name}_{i}": norm.weight, f"c{name}_{i}": norm.bias}
        return found
