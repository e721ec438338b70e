"""Small transformers from a configuration, with random weights: nothing is fetched."""

from __future__ import annotations

import torch


def _seeded():
    torch.manual_seed(50)


SMALL = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}


def bert():
    from transformers import BertConfig, BertModel

    _seeded()
    return BertModel(BertConfig(vocab_size=100, max_position_embeddings=64, **SMALL)).eval()


def bert_for_classes():
    from transformers import BertConfig, BertForSequenceClassification

    _seeded()
    return BertForSequenceClassification(BertConfig(vocab_size=100, max_position_embeddings=64, num_labels=3, **SMALL))


def roberta():
    """Its places are counted from the words that are not padding."""
    from transformers import RobertaConfig, RobertaModel

    _seeded()
    return RobertaModel(RobertaConfig(vocab_size=100, max_position_embeddings=70, pad_token_id=1, **SMALL))


def distilbert():
    from transformers import DistilBertConfig, DistilBertModel

    _seeded()
    return DistilBertModel(DistilBertConfig(vocab_size=100, dim=32, n_layers=2, n_heads=4, hidden_dim=64))


def _gpt2(use_cache):
    from transformers import GPT2Config, GPT2LMHeadModel

    _seeded()
    return GPT2LMHeadModel(
        GPT2Config(vocab_size=100, n_positions=64, n_embd=32, n_layer=2, n_head=4, use_cache=use_cache)
    )


def gpt2():
    return _gpt2(False)


def gpt2_with_cache():
    """It gives keys and values of its past too."""
    return _gpt2(True)


def llama():
    from transformers import LlamaConfig, LlamaForCausalLM

    _seeded()
    return LlamaForCausalLM(LlamaConfig(vocab_size=100, num_key_value_heads=2, use_cache=False, **SMALL))


def t5_encoder():
    """Distances between words in buckets."""
    from transformers import T5Config, T5EncoderModel

    _seeded()
    return T5EncoderModel(T5Config(vocab_size=100, d_model=32, d_kv=8, d_ff=64, num_layers=2, num_heads=4))


def vision():
    from transformers import ViTConfig, ViTModel

    _seeded()
    return ViTModel(ViTConfig(image_size=32, patch_size=8, **SMALL))
