"""The pack stage: documents in, every token once out, split by duplicate class, stable bytes."""

from __future__ import annotations

import hashlib

import numpy as np
import pyarrow as pa
import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit

from artifacts_schema.errors import InputError, StoreError
from artifacts_schema.store import backend
from stages.pack import shard as groups

FIRST = 16  # the first ordinary id: eight tokens have a role, eight are reserved


@pytest.mark.parametrize("strategy", ["best_fit", "concatenate"])
def test_every_token_of_every_document_comes_exactly_once(
    pack, corpus, read_documents, tokenizer, strategy
):
    shards = corpus()
    manifest = pack(shards, strategy=strategy)
    train, held = (read_documents(manifest, split) for split in ("train", "held_out"))
    assert not set(train) & set(held)
    for row in (row for shard in shards for row in shard):
        ids = tokenizer.encode(row["text"], add_special_tokens=False).ids
        assert (train | held)[row["doc_id"]] == [0, *ids, 1]
    assert len(train | held) == 300
    assert 10 < len(held) < 55  # 300 draws at 0.1: mean 30, deviation 5.2


def test_tables_count_what_the_shards_hold(
    pack, corpus, read_input, read_documents, read_rows, tokenizer
):
    shards = corpus()
    manifest = pack(shards)
    found = read_input(manifest, "train")
    table = found.read_json("shards.json")
    kept = read_documents(manifest, "train")
    rows = [row for shard in shards for row in shard if row["doc_id"] in kept]
    for name, source in table["sources"].items():
        mine = [row for row in rows if row["source"] == name]
        assert source["documents"] == len(mine)
        assert source["bytes"] == sum(len(row["text"].encode()) for row in mine)
        assert source["tokens"] == sum(len(kept[row["doc_id"]]) for row in mine)
        assert source["sequences"] == sum(shard["sequences"] for shard in source["shards"])
        assert source["tokens"] == sum(shard["tokens"] for shard in source["shards"])
        spoken = {
            code: sum(len(kept[r["doc_id"]]) for r in mine if (r["language"] or "") == code)
            for code in ("en", "")
        }
        assert source["languages"] == spoken
        assert (source["cut"], source["repetitive"]) == (0, 0)
    assert table["dtype"] == "uint16"
    assert table["strategy"] == "best_fit"
    assert (table["begin_id"], table["end_id"], table["padding_id"]) == (0, 1, 2)
    assert table["vocabulary_size"] == tokenizer.get_vocab_size()
    assert table["padded_vocabulary_size"] == -(-tokenizer.get_vocab_size() // 64) * 64
    counts = np.bincount(np.concatenate(list(kept.values())), minlength=table["vocabulary_size"])
    for split in ("train", "held_out"):
        raw = read_input(manifest, split).read_bytes("train_counts.bin")
        assert np.frombuffer(raw, "<i8").tolist() == counts.tolist()
    token_bytes = np.frombuffer(found.read_bytes("token_bytes.bin"), "<u2")
    assert int((counts * token_bytes).sum()) == sum(s["bytes"] for s in table["sources"].values())
    for sequences in read_rows(manifest, "train").values():
        padding = sequences == 2
        assert (np.diff(padding.astype(int), axis=1) >= 0).all(), "padding stands at the right"


def test_the_index_names_the_hash_of_the_text_that_a_document_had(pack, corpus, read_input):
    shards = corpus(40)
    manifest = pack(shards, held_out_share=0.3)
    hashes = {
        row["doc_id"]: hashlib.blake2b(row["text"].encode(), digest_size=8).hexdigest()
        for shard in shards
        for row in shard
    }
    seen = set()
    for split in ("train", "held_out"):
        found = read_input(manifest, split)
        for path in found.paths("*/*.index.parquet"):
            for piece in found.read_table(path).to_pylist():
                assert piece["content_hash"] == hashes[piece["doc_id"]]
                seen.add(piece["doc_id"])
    assert seen == set(hashes)


@pytest.mark.parametrize(
    ("source", "folder"),
    [("code/python", "code%2Fpython"), ("..", "%%2E%2E"), (".", "%%2E"), ("", "%"), ("é b", None)],
)
def test_a_source_is_one_folder_whatever_its_name(pack, read_shards, source, folder):
    rows = [{"text": f"the cat sat {n}", "source": source} for n in range(9)]
    (shard,) = read_shards(pack([rows], held_out_share=0.0), "train")["sources"][source]["shards"]
    assert shard["file"].endswith("/00000.tokens")
    assert shard["file"].count("/") == 1
    assert folder is None or shard["file"] == f"{folder}/00000.tokens"
    assert groups.source_folder(source) not in {".", "..", ""}


def test_documents_of_several_inputs_are_packed_together(pack, corpus, read_shards):
    one, two = corpus(300, seed=1), corpus(300, seed=2)
    apart = [read_shards(pack(rows), "train")["sources"]["web"] for rows in (one, two)]
    both = read_shards(pack([one, two], several=True), "train")["sources"]["web"]
    assert both["tokens"] == sum(table["tokens"] for table in apart)
    assert len(both["shards"]) == 1
    assert both["sequences"] <= sum(table["sequences"] for table in apart)


def test_copies_of_a_text_are_never_on_both_sides(pack, corpus, read_pieces):
    shards = corpus()
    rows = [row for shard in shards for row in shard]
    for i, row in enumerate(rows):
        row["duplicate_class"] = rows[i % 60]["doc_id"]
    manifest = pack(shards, held_out_share=0.3)
    train, held = (set(read_pieces(manifest, split)) for split in ("train", "held_out"))
    classes = {row["doc_id"]: row["duplicate_class"] for row in rows}
    assert train
    assert held
    assert not {classes[name] for name in train} & {classes[name] for name in held}


def test_a_class_stays_on_its_side_in_a_later_snapshot_of_its_own(pack, corpus, read_pieces):
    """`filter` names a class by its first run's document; the new documents bear that name."""
    first, second = corpus(seed=1), corpus(seed=2)
    names = [row["doc_id"] for shard in first for row in shard]
    for i, row in enumerate(row for shard in second for row in shard):
        row["duplicate_class"] = names[i]
    for row in (row for shard in first for row in shard):
        row["duplicate_class"] = row["doc_id"]
    sides = [
        set(read_pieces(pack(rows, held_out_share=0.3), "held_out")) for rows in (first, second)
    ]
    later = [row["doc_id"] for shard in second for row in shard]
    assert {names[i] for i, name in enumerate(later) if name in sides[1]} == sides[0]
    assert 50 < len(sides[0]) < 130  # 300 draws at 0.3: mean 90, deviation 7.9


def test_a_document_of_classes_on_both_sides_is_excluded_and_counted(pack, corpus, read_pieces):
    """Every third one is of a class of its own and linked to its neighbour's: .42 are torn."""
    shards = corpus()
    rows = [row for shard in shards for row in shard]
    for i, row in enumerate(rows):
        row["duplicate_class"] = row["doc_id"]
        row["linked_classes"] = [rows[i - 1]["doc_id"]] if i % 3 == 0 else None
    alone = pack([[{**row, "linked_classes": None} for row in rows]], held_out_share=0.3)
    side = {name: split for split in ("train", "held_out") for name in read_pieces(alone, split)}
    manifest = pack(shards, held_out_share=0.3)
    found = {name: split for split in side.values() for name in read_pieces(manifest, split)}
    torn = {
        row["doc_id"]
        for i, row in enumerate(rows)
        if i % 3 == 0 and side[row["doc_id"]] != side[rows[i - 1]["doc_id"]]
    }
    assert 25 < len(torn) < 60  # 100 draws at 2 * .3 * .7: mean 42, deviation 4.9
    assert found == {name: split for name, split in side.items() if name not in torn}
    assert manifest.conservation.dropped["between_splits"] == len(torn)


def test_another_seed_holds_out_other_documents(pack, corpus, read_pieces):
    first = set(read_pieces(pack(corpus(), seed=1), "held_out"))
    assert first != set(read_pieces(pack(corpus(), seed=2), "held_out"))


def test_nothing_is_held_out_on_request(pack, corpus, read_shards):
    assert read_shards(pack(corpus(), held_out_share=0.0), "held_out")["sources"] == {}


def test_documents_without_text_are_dropped_and_counted(pack, corpus):
    shards = corpus()
    shards[0][3]["text"] = shards[1][5]["text"] = ""
    shards[0][4]["text"], shards[1][6]["text"] = " \n\t ", "\u3000\u00a0\u2028"
    manifest = pack(shards)
    assert manifest.conservation.dropped == {"empty": 4}
    assert manifest.conservation.out == 296


@pytest.mark.parametrize("texts", [[], [""], [" "]])
def test_a_corpus_without_text_makes_empty_shards(pack, read_shards, texts):
    manifest = pack([texts])
    assert read_shards(manifest, "train")["sources"] == {}
    assert manifest.counts["train_tokens"] == 0


def test_special_tokens_spelt_in_a_text_stay_text(pack, corpus, read_documents):
    shards = corpus(20)
    shards[0][0]["text"] = "before <|im_end|><|end_of_text|><|pad|> after"
    ids = read_documents(pack(shards, held_out_share=0.0), "train")[shards[0][0]["doc_id"]]
    assert (ids[0], ids[-1]) == (0, 1)
    assert min(ids[1:-1]) >= FIRST


def test_a_document_longer_than_a_sequence_spans_several(pack, corpus, read_pieces):
    shards = corpus(20)
    shards[0][0]["text"] = "".join(f" cat {n} dog" for n in range(400))
    parts = read_pieces(pack(shards, held_out_share=0.0), "train")[shards[0][0]["doc_id"]]
    assert len(parts) > 10
    assert [len(ids) for _, ids in sorted(parts.items())][:-1] == [64] * (len(parts) - 1)
    assert parts[max(parts)][-1] == 1


def test_a_tokenizer_without_a_begin_token_begins_with_the_text(
    pack, corpus, read_documents, read_shards, tokenizer, tokenizer_files
):
    shards = corpus(20)
    files = tokenizer_files(tokenizer, bos_token=None)
    manifest = pack(shards, held_out_share=0.0, files=files)
    row = shards[0][0]
    ids = tokenizer.encode(row["text"], add_special_tokens=False).ids
    assert read_documents(manifest, "train")[row["doc_id"]] == [*ids, 1]
    assert read_shards(manifest, "train")["begin_id"] is None


def test_more_than_65536_tokens_take_four_bytes(
    pack, corpus, read_documents, read_shards, tokenizer, tokenizer_files
):
    large = Tokenizer.from_str(tokenizer.to_str())
    large.add_tokens([f"zq{n}" for n in range(70_000)])
    shards = corpus(20)
    shards[0][0]["text"] = "a zq69999 cat"
    manifest = pack(shards, held_out_share=0.0, files=tokenizer_files(large))
    assert read_shards(manifest, "train")["dtype"] == "uint32"
    assert large.get_vocab_size() - 1 in read_documents(manifest, "train")[shards[0][0]["doc_id"]]


def test_an_id_outside_the_vocabulary_is_an_error(pack, corpus, monkeypatch):
    monkeypatch.setattr(Tokenizer, "get_vocab_size", lambda self, **_: 300)
    with pytest.raises(InputError, match=r" 3\d\d, .* 300"):
        pack(corpus(20), files=_smaller(corpus), held_out_share=0.0)


def _smaller(corpus):
    from stages.tokenizer.training import train, transformers_config

    texts = (row["text"] for shard in corpus() for row in shard)
    made = train(texts, vocabulary_size=390, pre_tokenizer="llama-bpe", min_frequency=2)
    return {
        "tokenizer.json": made.to_str().encode(),
        "tokenizer_config.json": transformers_config("llama-bpe"),
        "training.json": {"vocabulary_size": 300, "padded_vocabulary_size": 320},
    }


@pytest.mark.parametrize(
    ("change", "value"),
    [
        ({"pad_token": None}, "pad_token"),
        ({"eos_token": "<|nowhere|>"}, r"<\|nowhere\|>"),
        ({"pad_token": "<|end_of_text|>"}, r"<\|end_of_text\|>"),
    ],
)
def test_a_tokenizer_without_what_packing_needs_is_refused(
    pack, corpus, tokenizer, tokenizer_files, change, value
):
    with pytest.raises(InputError, match=value):
        pack(corpus(20), files=tokenizer_files(tokenizer, **change))


def test_an_end_of_documents_that_a_text_can_spell_is_refused(pack, corpus, tokenizer_files):
    """As in T5 and XLM-R, whose vocabularies hold `</s>` as a piece like any other."""
    words = {"</s>": 0, "<pad>": 1, "a": 2, "[UNK]": 3}
    spelling = Tokenizer(WordLevel(words, unk_token="[UNK]"))
    spelling.pre_tokenizer = WhitespaceSplit()
    spelling.add_special_tokens(["</s>", "<pad>"])
    files = tokenizer_files(spelling, bos_token=None, eos_token="</s>", pad_token="<pad>")
    with pytest.raises(InputError, match="'</s>'"):
        pack(corpus(20), files=files)


def test_sizes_that_are_not_the_vocabularys_are_refused(pack, corpus, tokenizer, tokenizer_files):
    files = tokenizer_files(tokenizer)
    files["training.json"] = {"vocabulary_size": 7, "padded_vocabulary_size": 64}
    with pytest.raises(InputError, match="vocabulary_size 7"):
        pack(corpus(20), files=files)


@pytest.fixture
def small_groups(monkeypatch):
    """Groups of some 2,000 tokens, so that each source has several."""
    monkeypatch.setattr(groups, "TOKENS", 2_000)
    monkeypatch.setattr(groups, "SEQUENCES", 4)


def many(corpus):
    """Ten shards."""
    return [shard for seed in range(5) for shard in corpus(300, seed=seed)]


def test_worker_counts_do_not_change_a_byte(pack, corpus, small_groups):
    first = pack(many(corpus))
    again = pack(many(corpus), execution={"workers": 2}, force=True)
    assert again.outputs == first.outputs
    assert again.attempt == first.attempt, "equal bytes: the second copy is dropped"


def test_groups_cut_only_at_shards_and_hold_enough(pack, corpus, read_shards, small_groups):
    sources = read_shards(pack(many(corpus)), "train")["sources"]
    for source in sources.values():
        assert len(source["shards"]) > 2
        assert all(shard["tokens"] >= 2_000 for shard in source["shards"])


@pytest.mark.full
@pytest.mark.parametrize("recorded", [3, 10, 12])
def test_killed_in_either_map_it_goes_on_to_the_same_bytes(
    pack, corpus, small_groups, killed_at, store, recorded
):
    """Ten shards are encoded: the third kills inside that map, the tenth between the two."""
    with killed_at("shard recorded", visit=recorded):
        pack(many(corpus))
    resumed = pack(many(corpus))
    whole = pack(many(corpus), force=True)
    assert resumed.outputs == whole.outputs
    assert resumed.counts == whole.counts


@pytest.mark.parametrize("where", ["encode_shard", "pack_group"])
def test_a_full_disk_in_either_map_is_one_clear_error_and_what_is_done_is_kept(
    pack, corpus, small_groups, monkeypatch, where
):
    write = backend.HashingWriter.write
    files = []

    def limited(self, data):
        if where in str(self.raw.name):
            files.append(self)
            if len({id(file) for file in files}) > 3:
                raise OSError(28, "No space left on device")
        return write(self, data)

    with monkeypatch.context() as patch:
        patch.setattr(backend.HashingWriter, "write", limited)
        with pytest.raises(StoreError, match=where):
            pack(many(corpus))
    resumed = pack(many(corpus))
    assert resumed.outputs == pack(many(corpus), force=True).outputs


def test_sequences_of_a_group_are_shuffled(pack, corpus, read_input):
    """Best fit opens sequences with the longest documents first; shuffled, they lie anywhere."""
    found = read_input(pack(corpus(2_000), held_out_share=0.0), "train")
    table = found.read_table("web/00000.index.parquet")
    firsts = table.filter(pa.compute.equal(table["start"], 0))["length"].to_numpy()
    half = len(firsts) // 2
    assert abs(firsts[:half].mean() - firsts[half:].mean()) < 4
