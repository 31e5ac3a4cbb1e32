"""Writes vectors.jsonl: texts, and what OpenAI's tiktoken makes of them.

    pip install tiktoken==0.14.0
    python vectors.py [HOW MANY [SEED [LENGTH]]] > vectors.jsonl

tiktoken loads its vocabularies from the network once, or from TIKTOKEN_CACHE_DIR.
"""
import json, random, sys
import tiktoken

count, seed, length = (int(a) for a in (sys.argv[1:] + ["300", "1", "12"][len(sys.argv) - 1:]))
o200k, cl100k = tiktoken.get_encoding("o200k_base"), tiktoken.get_encoding("cl100k_base")

# What the two regular expressions tell apart, and what stands at their corners.
parts = [
    " ", "  ", "   ", "\t", "\n", "\r\n", "\n\n", " \n", "\n ", "\u00a0", "\u0085", "\u2028", "\u3000",
    "a", "Ab", "ABC", "hello", "World", "HTTPServer", "camelCase", "snake_case", "étude", "ÉTUDE", "ǅ", "ʰ", "ª",
    "'s", "'S", "'re", "'LL", "'ve", "'d", "'m", "'ſ", "'x", "don't", "IT'S", "'",
    "1", "12", "123", "1234", "٣", "Ⅳ", "²", "½", "3.14", "1,000,000",
    ".", "...", "//", "/", "/*", "*/", "=>", "!=", "{}", "();", "\"", "\\n", "<|endoftext|>", "---", "====", "#", "@", "€", "→", "«»",
    "日本語", "中文字", "ひらがな", "カタカナ", "한국어", "привет", "ПРИВЕТ", "γειά", "שלום", "مرحبا", "नमस्ते", "สวัสดี", "ạ̈", "e\u0301", "\u0301", "\u200d", "\ufe0f",
    "👍", "👩\u200d👩\u200d👧", "🇩🇪", "\U0001f600", "\ufffd", "\x00", "\x7f", "\U000e0001", "ﬁ", "ß", "İ",
    "function", " return", "\tif (x) {\n", "    def f(self):\n", "https://example.com/a?b=c", "2026-11-30T15:24:01.123456Z", "0b8f5a52-3c1e-4d0b", "aGVsbG8gd29ybGQ=",
]
rnd = random.Random(seed)
texts = [""] + parts + ["a" * 70, "ab" * 50, " " * 100, "=" * 80, "日" * 70, "x\n" * 40, "A" * 300, "aAbB" * 40, "0" * 100, "-" * 65, "\n" * 90, "ничего" * 30]
while len(texts) < count:
    t = "".join(rnd.choice(parts) for _ in range(rnd.randint(1, length)))
    if rnd.random() < 0.2:
        t += "".join(chr(c) for c in (rnd.choice([rnd.randint(0, 0x2ff), rnd.randint(0, 0xd7ff), rnd.randint(0xe000, 0x1ffff)]) for _ in range(rnd.randint(1, 6))))
    texts.append(t)
for t in texts:
    print(json.dumps({"text": t, "o200k": o200k.encode_ordinary(t), "cl100k": cl100k.encode_ordinary(t)}, separators=(",", ":")))
