"""Turns a result of bench/run.py into a Markdown table."""

from statistics import median

COLUMNS = [
    # key, heading, format, whether mlxcel is compared on it
    ("prefill_tok_s", "prefill tok/s", "{:.1f}", True),
    ("decode_tok_s", "decode tok/s", "{:.1f}", True),
    ("load_ms", "load ms", "{:.0f}", True),
    ("encode_mb_s", "encode MB/s", "{:.2f}", True),
    ("decode_mb_s", "decode MB/s", "{:.2f}", True),
    ("first_token_s", "first token s", "{:.3f}", False),
    ("peak_rss_mb", "peak RSS MB", "{:.0f}", False),
]


def values(samples, key):
    return [sample[key] for sample in samples if key in sample]


def spread(numbers, form):
    """`median (min-max)`."""
    if not numbers:
        return ""
    parts = [form.format(f(numbers)) for f in (median, min, max)]
    return f"{parts[0]} ({parts[1]}–{parts[2]})"


def ratio(ours, theirs, key):
    """The median over rounds of ours / theirs, with its spread."""
    pairs = zip(values(ours, key), values(theirs, key))
    return spread([a / b for a, b in pairs], "{:.2f}")


def render(result):
    """The first contender is ours; the ratios are ours / theirs."""
    runs = list(result["samples"].items())
    ours = runs[0][1]
    columns = [column for column in COLUMNS if values(ours, column[0])]
    compared = [column for column in columns
                if column[3] and len(runs) > 1]
    rows = [["program"] + [column[1] for column in columns]
            + [f"ours / theirs, {column[1].split()[0]}"
               for column in compared]]
    for name, samples in runs:
        row = [name] + [spread(values(samples, key), form)
                        for key, _, form, _ in columns]
        for key, *_ in compared:
            row.append("" if samples is ours else ratio(ours, samples, key))
        rows.append(row)
    return "\n".join([heading(result, len(ours)), "", *lines(rows),
                      *bandwidth(ours), ""])


def heading(result, rounds):
    parts = [result["title"]]
    if result["prompt"]:
        parts.append(f"prompt {result['prompt']}")
    if result["generate"]:
        parts.append(f"generate {result['generate']}")
    plural = "" if result["threads"] == 1 else "s"
    parts += [f"{result['threads']} thread{plural}", f"{rounds} rounds"]
    return "\n### " + ", ".join(parts)


def lines(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for number, row in enumerate(rows):
        cells = (cell.ljust(width) for cell, width in zip(row, widths))
        yield "| " + " | ".join(cells) + " |"
        if number == 0:
            yield "|" + "|".join("-" * (width + 2) for width in widths) + "|"


def bandwidth(ours):
    read = values(ours, "read_bandwidth_gb_s")
    if not read:
        return []
    share = spread([100 * x for x in values(ours, "bandwidth_share")],
                   "{:.0f}")
    return ["", f"Read bandwidth {spread(read, '{:.1f}')} GB/s; "
                f"our decode uses {share} % of it."]
