"""The networks of the papers, one file a model; ``contract.Model`` says what each has.

Power: ``decoder.Decoder``. Liu: ``toy.AdditionDecoder`` and ``ProductDecoder``, ``encoder.PairEncoder``,
``dense.DenseNet`` for images. Gromov: ``mlp.TwoLayerMLP``, ``transformer.Transformer`` and ``AttentionOnly``. Gu:
``pair_transformer.PairTransformer``, ``embedded_mlp.EmbeddedMLP``, ``resnet.ResNet18`` and, in its place without
pictures, ``slot_mlp.SlotMLP``.
"""
