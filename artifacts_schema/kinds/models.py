"""Models that judge text, checkpoints, and what is measured and released."""

from artifacts_schema.kinds.documents import DOC_ID
from artifacts_schema.kinds.schema import Column, Kind, Table

NGRAM_MODEL = Kind(
    name="ngram_model",
    version=1,
    description="An n-gram language model of words or pieces, and how well it predicts.",
    files={
        "card.json": "Whether it was made; order, n-grams by order, sample, held-out perplexity.",
        "model.arpa": "The model as text, as every tool reads it.",
        "model.json": "What it was estimated with; sizes of its tables.",
        "*.bin": "The words and n-grams as tables that are mapped into memory.",
    },
)

CLASSIFIER = Kind(
    name="classifier",
    version=1,
    description="A fastText classifier of two classes, with its score card.",
    files={
        "card.json": "Whether it was made; its signal, how a text is put before it, training "
        "arguments, cut-off, and precision, recall, ROC, calibration on held documents.",
        "classifier.bin": "The model as fastText saves it.",
        "classifier.ftz": "The same quantized, where that was asked for.",
    },
)

CUTOFFS = Kind(
    name="cutoffs",
    version=1,
    description="Perplexities that part the text of a language into head, middle and tail.",
    files={
        "cutoffs.json": "Whether they were made; by language: head, tail, percentiles, documents."
    },
)

CHECKPOINT = Kind(
    name="checkpoint",
    version=1,
    description="A model at a training step, free of any parallel layout, with its tokenizer.",
    files={
        "model.json": "Architecture: the fields of `stages.model.ModelConfig`.",
        "model.safetensors": "Weights under Ingot's names; or an average of them, where asked for.",
        "trained.safetensors": "The weights that training goes on from, beside an average.",
        "averages.safetensors": "Averages of the weights as they are kept up, where there are any.",
        "optimizer.safetensors": "Optimizer state by parameter name, where it was asked for.",
        "state.json": "training_step, tokens, phase, what else a continuation needs, and where the "
        "chat template comes from.",
        "tokenizer.json": "The tokenizer of the `tokenizers` library; not of every imported model.",
        "tokenizer_config.json": "Its special tokens, and the chat template that the weights were "
        "last trained with, if any.",
    },
)

TRAINING_RUN = Kind(
    name="training_run",
    version=2,
    description="What happened in a training run, step by step; speed and memory are telemetry.",
    tables={
        "metrics.parquet": Table(
            (
                Column("training_step", "int64", "Optimizer update, from 1."),
                Column("tokens", "int64", "Tokens consumed up to and with this step."),
                Column("phase", "int32", "Index of the phase."),
                Column("loss", "float64", "Mean loss over the step's valid targets, nats."),
                Column("grad_norm", "float64", "Global gradient norm before clipping."),
                Column("learning_rate", "float64", "Learning rate of the step."),
            ),
            open=True,
        ),
        "held_out.parquet": Table(
            (
                Column("training_step", "int64", "Updates done; 0 is the untrained model."),
                Column("tokens", "int64", "Tokens consumed."),
                Column("source", "string", "Source, or `all`."),
                Column("loss", "float64", "Mean loss over held-out targets, nats."),
                Column(
                    "bits_per_byte", "float64?", "Loss in bits over UTF-8 bytes of the targets."
                ),
                Column("language", "string?", "Language, where it is of one alone; '' of none."),
            )
        ),
        "events.parquet": Table(
            (
                Column("training_step", "int64", "Training step that it came with."),
                Column("tokens", "int64", "Tokens consumed up to and with it."),
                Column("kind", "string", "spike, not_finite, rollback, …"),
                Column("details", "string", "What else is to be said of it, as JSON."),
            )
        ),
        "excluded.parquet": Table(
            (
                DOC_ID,
                Column("reason", "string", "Trouble that a training step with it was in."),
                Column("source", "string", "Source of the document."),
                Column("training_step", "int64", "The first such training step."),
            )
        ),
    },
    files={
        "run.json": "Plan and account: phases, tokens planned and realised by source, baseline."
    },
)

EVALUATION = Kind(
    name="evaluation",
    version=2,
    description="Scores with 95 % intervals, the items behind them, and sample generations.",
    tables={
        "results.parquet": Table(
            (
                Column(
                    "benchmark", "string", "Benchmark, `held_out/<source>` or `planted/<defect>`."
                ),
                Column("metric", "string", "accuracy, accuracy_by_bytes, bits_per_byte, recall, …"),
                Column("value", "float64", "The score."),
                Column("standard_error", "float64?", "Its standard error, where one is defined."),
                Column(
                    "low",
                    "float64?",
                    "Lower end of its 95 % interval: Wilson's for shares (accuracy, recall), else "
                    "1.96 standard errors below it.",
                ),
                Column("high", "float64?", "Upper end of that interval."),
                Column("count", "int64", "Items (or bytes, for bits_per_byte) behind it."),
                Column("baseline", "float64?", "Chance, or the token-unigram model."),
            )
        ),
        "items.parquet": Table(
            (
                Column("benchmark", "string", "Benchmark."),
                Column("item_id", "string", "Item."),
                Column("metric", "string", "Metric."),
                Column("value", "float64", "Value of the item."),
                Column("contaminated", "bool?", "Whether the corpus holds an n-gram of the item."),
            )
        ),
        "generations.parquet": Table(
            (
                Column("prompt", "string", "The prompt as the model saw it."),
                Column("completion", "string", "What it wrote."),
                Column("form", "string", "`text` or `chat`."),
            )
        ),
    },
)

RELEASE = Kind(
    name="release",
    version=1,
    description="A model folder that `transformers` loads by its Auto classes, card and lineage.",
    files={
        "model.safetensors": "Weights under Hugging Face's names, where they fit into one file.",
        "*.safetensors": "Else weights in files of `max_shard_bytes`, numbered from 00001.",
        "model.safetensors.index.json": "Which of several files holds each tensor.",
        "*.json": "config, generation_config, tokenizer, tokenizer_config, ingot (lineage).",
        "chat_template.jinja": "The chat template, where the checkpoint has one.",
        "README.md": "Model card.",
    },
)
