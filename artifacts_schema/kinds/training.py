"""Kinds that training reads and makes: tokenizers and token shards, models, checkpoints and
evaluations.
"""

from __future__ import annotations

from artifacts_schema.kinds.documents import DOC_ID
from artifacts_schema.kinds.examples import TASKS_FILE
from artifacts_schema.kinds.schema import Column, Kind, make_table

FORMULATION = Column(
    "formulation",
    "string?",
    "How the item was put to the model: `cloze`, `multiple_choice`, `hybrid`, `free`; null: as its "
    "row came.",
)
SHOTS = Column("shots", "int32?", "Few-shot examples in the prompt; null: as its row came.")
PROMPT_DIGEST = Column(
    "prompt_digest", "string", "16 hex digits: BLAKE2b (8 bytes) of the prompt, UTF-8."
)

MODEL_KINDS = (
    Kind(
        name="tokenizer",
        version=2,
        description="A tokenizer, trained here or brought along, in the files that `tokenizers` "
        "and `transformers` load.",
        files={
            "tokenizer.json": "The tokenizer of the `tokenizers` library.",
            "tokenizer_config.json": "Special tokens by role, and an imported one's chat "
            "template, as `transformers` reads them.",
            "training.json": "algorithm, pre_tokenizer (llama.cpp's name, or null), "
            "vocabulary_size, padded_vocabulary_size, special_tokens by role, and the sample it "
            "was trained on or where it came from.",
        },
    ),
    Kind(
        name="tokenizer_comparison",
        description="How tokenizers cut the same texts: sums by text, language and source.",
        tables={
            "measures.parquet": make_table(
                Column("tokenizer", "string", "Its name in the comparison."),
                Column("text", "string", "`documents` (held-out ones) or `parallel`."),
                Column("language", "string?", "Language, as declared."),
                Column("source", "string", "Source of the documents."),
                Column("documents", "int64", "Documents measured."),
                Column("bytes", "int64", "UTF-8 bytes."),
                Column("characters", "int64", "Code points."),
                Column("words", "int64", "Words, as Unicode segments text (UAX #29)."),
                Column("continued_words", "int64", "Words of more than one token."),
                Column("tokens", "int64", "Tokens."),
                Column("unknown_tokens", "int64", "Tokens for what the vocabulary lacks."),
                Column("not_restored", "int64", "Documents that decode to another text."),
            ),
            "tokens.parquet": make_table(
                Column("tokenizer", "string", "Its name in the comparison."),
                Column("token_id", "int64", "Id."),
                Column("token", "string", "Its text; bytes of a split character as \\xe4."),
                Column("bytes", "int32", "Bytes that it stands for; 0 for special tokens."),
                Column("uses", "int64", "Uses in all texts of the comparison."),
            ),
        },
        files={
            "tokenizers.json": "By name: digest, algorithm, vocabulary size, origin, what it was "
            "trained on, unused tokens, and ids of unreachable ones."
        },
    ),
    Kind(
        name="token_shards",
        version=5,
        description="Packed sequences of one length, by source, with the document of every token. "
        "Those of conversations have marks (version 3) and may have weights (4); of preference "
        "pairs (5) a document is two conversations, the chosen answer and the rejected one.",
        tables={
            "*/*.index.parquet": make_table(
                Column("sequence", "int64", "Row of the sequence within its shard."),
                Column("start", "int32", "First token of the piece within the sequence."),
                Column("length", "int32", "Tokens of the piece."),
                Column("doc_id", "string", "The document."),
                Column("document_start", "int64", "First token of the piece within the document."),
                Column("language", "string?", "Language of the document, as declared."),
                Column(
                    "content_hash",
                    "string",
                    "16 hex digits: BLAKE2b (8 bytes) of the document's text, UTF-8.",
                ),
            )
        },
        files={
            "shards.json": "dtype, sequence_length, strategy, vocabulary_size, "
            "padded_vocabulary_size, tokenizer (digest), begin_id (or null), end_id, padding_id, "
            "and by source: shards [{file, sequences, tokens; weights (true) if it has them}], "
            "sequences, tokens, documents, "
            "bytes, languages {code, or empty: tokens}, repetitive (segments left out), cut "
            "(documents no longer than a sequence that were cut), dropped_tokens {cropped, "
            "repetitive}; of conversations also marks (true) and chat_template, of preference "
            "pairs also pairs (true).",
            "token_bytes.bin": "uint16 little-endian [vocabulary_size]: UTF-8 bytes of each token, "
            "0 for special tokens.",
            "train_counts.bin": "int64 little-endian [vocabulary_size]: uses in the train split.",
            "*/*.tokens": "[sequences, sequence_length] token ids, uint16 or uint32 little-endian; "
            "pieces from the left, then padding.",
            "*/*.marks": "Of conversations, beside the tokens: uint8 [sequences, sequence_length], "
            "0 for padding, else 1, plus 2 for the first token of a conversation, 4 for one that "
            "is learnt, and 8 times the speaker (0 template, 1 system, 2 user, 3 assistant, "
            "4 tool).",
            "*/*.weights": "Of conversations with weights other than 0 and 1, beside the tokens: "
            "float32 little-endian [sequences, sequence_length], how much each token counts where "
            "it is learnt; 0 for padding.",
        },
    ),
    Kind(
        name="excluded",
        description="Documents and tokens that are in no sequence, with the reason.",
        tables={
            "*/*.parquet": make_table(
                Column("doc_id", "string", "The document."),
                Column("source", "string", "Its source."),
                Column("split", "string?", "The split that it would be in; null where in none."),
                Column(
                    "reason",
                    "string",
                    "empty, between_splits (near documents of both), repetitive or cropped.",
                ),
                Column("tokens", "int64", "Tokens left out; 0 where none were counted."),
                Column("whole", "bool", "Whether nothing of the document is in a sequence."),
            )
        },
    ),
    Kind(
        name="ngram_model",
        description="An n-gram language model of words or pieces, and how well it predicts.",
        files={
            "card.json": "Whether it was made; order, n-grams by order, sample, held-out "
            "perplexity.",
            "model.arpa": "The model as text, as every tool reads it.",
            "model.json": "What it was estimated with; sizes of its tables.",
            "*.bin": "The words and n-grams as tables that are mapped into memory.",
        },
    ),
    Kind(
        name="classifier",
        description="A fastText classifier of two classes, with its score card.",
        files={
            "card.json": "Whether it was made; its signal, how a text is put before it, training "
            "arguments, cut-off, and precision, recall, ROC, calibration on held documents.",
            "classifier.bin": "The model as fastText saves it.",
            "classifier.ftz": "The same quantized, where that was asked for.",
        },
    ),
    Kind(
        name="cutoffs",
        description="Perplexities that part the text of a language into head, middle and tail.",
        files={
            "cutoffs.json": "Whether they were made; by language: head, tail, percentiles, "
            "documents."
        },
    ),
    Kind(
        name="checkpoint",
        version=2,
        description="A model at a training step, free of any parallel layout, with its tokenizer. "
        "A file of tensors with over 5 GB is several, as Hugging Face's: `NAME-00001-of-0000N` and "
        "so on, with an index; version 1 has one file always.",
        files={
            "model.json": "Architecture: the fields of `stages.model.ModelConfig`.",
            "model.safetensors": "Weights under Ingot's names; or an average of them, where asked "
            "for.",
            "trained.safetensors": "The weights that training goes on from, beside an average.",
            "averages.safetensors": "Averages of the weights as they are kept up, where there are "
            "any.",
            "adapter_config.json": "Of an adapter that the weights were trained by: `peft`'s "
            "settings of it.",
            "adapter_model.safetensors": "Its matrices under `peft`'s names; `model` has them "
            "merged.",
            "optimizer.safetensors": "Optimizer state by parameter name, where it was asked for.",
            "*-?????-of-?????.safetensors": "One of several files that hold the tensors of "
            "`model`, `trained`, `averages` or `optimizer`.",
            "*.safetensors.index.json": "Of each of these: which file holds which tensor.",
            "state.json": "training_step, tokens, phase, what else a continuation needs, and "
            "where the chat template comes from.",
            "tokenizer.json": "The tokenizer of the `tokenizers` library; not of every imported "
            "model.",
            "tokenizer_config.json": "Its special tokens, and the chat template that the weights "
            "were last trained with, if any.",
        },
    ),
    Kind(
        name="prompt",
        description="Virtual tokens before every text, trained beside the weights of a checkpoint.",
        files={
            "adapter_config.json": "Number and width of the virtual tokens, as `peft` reads it.",
            "adapter_model.safetensors": "`prompt_embeddings` [virtual tokens, width], float32; "
            "the digest of the checkpoint in its metadata (`ingot_base`).",
            "state.json": "training_step, tokens, virtual_tokens, and the checkpoint.",
        },
    ),
    Kind(
        name="reward_model",
        description="A model that scores answers, one number each, with its tokenizer. It writes "
        "no text, so that no stage takes it for a language model.",
        files={
            "model.json": "Architecture: the fields of `stages.model.ModelConfig`; "
            "`tied_embeddings` says that it has no output projection.",
            "model.safetensors": "Weights under Ingot's names, and `score.weight` [1, width].",
            "*-?????-of-?????.safetensors": "One of several files that hold its tensors.",
            "*.safetensors.index.json": "Which file holds which tensor.",
            "state.json": "training_step, tokens, phase, and where the chat template comes from.",
            "tokenizer.json": "The tokenizer of the `tokenizers` library.",
            "tokenizer_config.json": "Its special tokens, and the chat template that answers were "
            "written by.",
        },
    ),
    Kind(
        name="reference_log_probabilities",
        description="Log-probabilities of both answers of preference pairs under a model that "
        "others are compared with.",
        tables={
            "pairs.parquet": make_table(
                Column("preference_id", "string", "The pair; those left out are not there."),
                Column("chosen", "float32", "Of the chosen answer: the sum over its tokens, nats."),
                Column("rejected", "float32", "Of the rejected answer."),
            ),
        },
        files={
            "reference.json": "What they belong to: checkpoint and preferences (digests), context, "
            "too_long, precision.",
        },
    ),
    Kind(
        name="teacher_log_probabilities",
        description="Of each token that packed sequences predict: a teacher's likeliest tokens and "
        "their log-probabilities.",
        files={
            "teacher.json": "What they belong to: checkpoint and token shards (digests), top, "
            "vocabulary_size, sequence_length; by source: targets, mean entropy on record, mean "
            "probability of the other tokens.",
            "*/*.teacher": "Beside a file of token shards, under its name: records [sequences, "
            "sequence_length] of `top` ids (uint32) and `top` + 1 log-probabilities (float32, "
            "nats), the last of all other tokens together, little-endian; zeros where nothing is "
            "predicted.",
        },
    ),
    Kind(
        name="training_run",
        version=2,
        description="What happened in a training run, step by step; speed and memory are "
        "telemetry.",
        tables={
            "metrics.parquet": make_table(
                Column("training_step", "int64", "Optimizer update, from 1."),
                Column("tokens", "int64", "Tokens consumed up to and with this step."),
                Column("phase", "int32", "Index of the phase."),
                Column("loss", "float64", "Mean loss over the step's valid targets, nats."),
                Column("grad_norm", "float64", "Global gradient norm before clipping."),
                Column("learning_rate", "float64", "Learning rate of the step."),
                open=True,
            ),
            "held_out.parquet": make_table(
                Column("training_step", "int64", "Updates done; 0 is the untrained model."),
                Column("tokens", "int64", "Tokens consumed."),
                Column("source", "string", "Source, or `all`."),
                Column("loss", "float64", "Mean loss over held-out targets, nats."),
                Column(
                    "bits_per_byte", "float64?", "Loss in bits over UTF-8 bytes of the targets."
                ),
                Column("language", "string?", "Language, where it is of one alone; '' of none."),
                open=True,
            ),
            "events.parquet": make_table(
                Column("training_step", "int64", "Training step that it came with."),
                Column("tokens", "int64", "Tokens consumed up to and with it."),
                Column("kind", "string", "spike, not_finite, rollback, …"),
                Column("details", "string", "What else is to be said of it, as JSON."),
            ),
            "excluded.parquet": make_table(
                DOC_ID,
                Column("reason", "string", "Trouble that a training step with it was in."),
                Column("source", "string", "Source of the document."),
                Column("training_step", "int64", "The first such training step."),
            ),
        },
        files={
            "run.json": "Plan and account: phases, tokens planned and realised by source, baseline."
        },
    ),
    Kind(
        name="evaluation",
        version=5,
        description="Scores with 95 % intervals, the items behind them, and sample generations.",
        tables={
            "results.parquet": make_table(
                Column(
                    "benchmark", "string", "Benchmark, `held_out/<source>` or `planted/<defect>`."
                ),
                FORMULATION,
                SHOTS,
                Column("metric", "string", "accuracy, accuracy_by_bytes, bits_per_byte, recall, …"),
                Column("value", "float64", "The score."),
                Column("standard_error", "float64?", "Its standard error, where one is defined."),
                Column(
                    "low",
                    "float64?",
                    "Lower end of its 95 % interval: Wilson's for shares (accuracy, recall), else "
                    "Student's t over units.",
                ),
                Column("high", "float64?", "Upper end of that interval."),
                Column("count", "int64", "Items (or bytes, for bits_per_byte) behind it."),
                Column("baseline", "float64?", "Chance, or the token-unigram model."),
            ),
            "items.parquet": make_table(
                Column("benchmark", "string", "Benchmark."),
                Column("item_id", "string", "Item."),
                FORMULATION,
                SHOTS,
                Column("metric", "string", "Metric."),
                Column("value", "float64", "Value of the item."),
                Column(
                    "weight", "float64", "Its bytes for bits per byte; 1 where each counts as one."
                ),
                Column("cluster", "string?", "What items that are not independent share, as JSON."),
                Column("contaminated", "bool?", "Whether the corpus holds an n-gram of the item."),
            ),
            "choices.parquet": make_table(
                Column("benchmark", "string", "Benchmark."),
                Column("item_id", "string", "Item."),
                FORMULATION,
                SHOTS,
                PROMPT_DIGEST,
                Column("choice", "int32", "Place of the choice among the item's."),
                Column("is_right", "bool", "Whether it is the answer."),
                Column("characters", "int32", "Characters of the choice."),
                Column("bytes", "int32", "Its UTF-8 bytes."),
                Column("scored_bytes", "int32", "Those with the delimiter before it."),
                Column(
                    "log_likelihoods",
                    "list<float64>",
                    "Of each token of the choice after the prompt, nats.",
                ),
                Column(
                    "is_greedy",
                    "bool",
                    "Whether each token of the choice is the likeliest after those before it.",
                ),
                Column(
                    "unconditional",
                    "float64?",
                    "Of the choice after nothing, where measured, nats.",
                ),
            ),
            "answers.parquet": make_table(
                Column("benchmark", "string", "Benchmark."),
                Column("item_id", "string", "Item."),
                FORMULATION,
                SHOTS,
                Column("sample", "int32", "Number of the answer among the item's, from 0."),
                PROMPT_DIGEST,
                Column("text", "string", "What the model wrote, up to its end or a stop text."),
                Column(
                    "token_log_probabilities",
                    "list<float32>",
                    "Of each token written, at temperature 1, nats.",
                ),
                Column(
                    "ending",
                    "string",
                    "`stop` (a stop text), `end` (the model's own) or `length`.",
                ),
                Column("references", "list<string>", "Right answers; of code the test program."),
                Column("chat", "bool", "Whether it was asked in the chat format."),
            ),
            "judgements.parquet": make_table(
                Column("benchmark", "string", "Benchmark."),
                Column("item_id", "string", "Item."),
                FORMULATION,
                SHOTS,
                Column("sample", "int32", "Number of the answer among the item's, from 0."),
                Column("metric", "string", "Metric, with the name of the rule of extraction."),
                Column("value", "float64", "1 for right, of several instructions how many."),
                Column("weight", "float64", "What the value is of: 1, or the instructions."),
                Column("answer", "string?", "What was taken from the text; null: nothing."),
                Column(
                    "outcome", "string?", "Of a program: `passed`, `failed`, `timeout`, `memory`."
                ),
                Column("detail", "string?", "Why it failed; the program may have written it."),
            ),
            "generations.parquet": make_table(
                Column("prompt", "string", "The prompt as the model saw it."),
                Column("completion", "string", "What it wrote."),
                Column("form", "string", "`text` or `chat`."),
                Column(
                    "benchmark", "string?", "Benchmark of the question; null for a config's prompt."
                ),
            ),
        },
        files={"tasks.json": TASKS_FILE},
    ),
)
