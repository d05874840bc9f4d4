"""Text that is hard on tokenizers: scripts, emoji, combining marks, control
characters, runs of spaces, code, digits, text around added tokens.
"""

import random

WORDS = """the of and to in is that it was for on are as with his they word
words worder Hello World hello ınverse STRASSE straße ŉandu don't I'm we'll
THEY'RE it'S 'tis İstanbul ΌΣΟΣ naïve café piñata Ångström Добрый день
Привет мир γειά σου κόσμε שלום עולם مرحبا بالعالم नमस्ते दुनिया สวัสดี ชาวโลก
안녕하세요 세계 こんにちは世界 カタカナ 你好，世界。 中文字符测试 한국어 ქართული
Ελληνικά ไทย தமிழ் বাংলা ខ្មែរ አማርኛ ᠮᠣᠩᠭᠣᠯ return def lambda self.value
x86_64 0xDEADBEEF 3.14159 1,234,567.89 2024-02-29 v1.2.3-rc1 user@example.com
https://example.org/a?b=c&d=%20e#f foo_bar fooBar FooBar CONSTANT_NAME
std::vector<int> != == <= >= && || -> => :: ... --- *** ### /* */ // <!--
-->""".split()
CHARACTERS = list(
    " \t\n\r\x0b\x0c\x00\x01\x1b\x7f\x85\xa0\u1680\u2000\u2003\u2009\u200b"
    "\u200c\u200d\u2028\u2029\u202f\u205f\u3000\ufeff\ufffd\u2581"
    "'’ʼ\"`.,;:!?-_()[]{}<>/\\|@#$%^&*+=~"
    "²³¹¼½¾①ⅣⅷⓐªºſKÅǅßẞŉİıΣσς"
    "\u0300\u0301\u0308\u0327\u0345\u0591\u064b\u0903\u093c\u0e31\u0f71\u20dd"
    "\u3099\ufe0f\U0001f3fb\U0001f468\U0001f469\U0001f467\U0001f1e6"
    "\U0001f600\u2764\u2615\u00a9"
    "가각힣각ﬁﬀﬆｱｶﾞ㍿㋿丽𝔸𝟘𠀀０９٣५๙"
    "\ua7da\ua7cb\U00016ea0\U00010d50\u1c89\u16ee\U0001e030\u2160\u24b6"
    "\U00011938\U00010781\ud7a3\ue000\uffff\U0010ffff\U000e0001")


class HardText:
    """A reproducible source of such text around some added tokens."""

    def __init__(self, seed, added=()):
        self.random = random.Random(str(seed))
        self.added = list(added)

    def corpus(self, count=3000):
        """Text to train on, the same each time."""
        return [self.text() for _ in range(count)]

    def text(self):
        count = self.random.choice((0, 1, 2, 3, 5, 8, 20))
        return "".join(self.part() for _ in range(count))

    def part(self):
        pick = self.random.random
        kind = pick()
        if kind < 0.4:
            word = self.random.choice(WORDS)
            return self.random.choice(("", " ", " ", " ", "\n")) + word
        if kind < 0.6:
            return self.random.choice(CHARACTERS)
        if kind < 0.7:
            return self.random.choice(" \n\t\r\u3000a0") * self.random.choice(
                (1, 2, 3, 4, 9, 40))
        if kind < 0.76:
            return str(self.random.randrange(10 ** self.random.randrange(1,
                                                                         12)))
        if kind < 0.88 and self.added:
            return (self.random.choice(("", "", " ", "  ", "\n", "x", "\u3000"))
                    + self.random.choice(self.added)
                    + self.random.choice(("", "", " ", "\t ", "x", "é")))
        return "".join(self.character() for _ in range(self.random.choice(
            (1, 1, 2, 4))))

    def character(self):
        """Any character but a surrogate, near ones more often."""
        while True:
            c = self.random.randrange(self.random.choice(
                (0x80, 0x250, 0x800, 0x3100, 0x10000, 0x20000, 0x110000)))
            if not 0xd800 <= c < 0xe000:
                return chr(c)
