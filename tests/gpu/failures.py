"""What failed, in no more characters than a reader of the console's end gets to see."""
from commands import shown

LEAST_CHARACTERS = 600  # of a text, or it says nothing


def fit(texts, most):
    """Each with a fair share of `most` characters: short ones leave theirs to long ones."""
    cut, room = list(texts), most
    for left, i in zip(range(len(texts), 0, -1),
                       sorted(range(len(texts)), key=lambda i: len(texts[i]))):
        cut[i] = shown(texts[i], max(room // left, 150))
        room -= len(cut[i])
    return cut


def of_part(name, part, most):
    """The verdict first, then what was said, from the first on."""
    head = shown(f"== {name} failed: {part['note']}", max(most // 2, 300))
    details = [f"\n-- {text.strip()}" for text in part.get("details", [])]
    room, kept = most - len(head), 0
    while kept < len(details) and (kept == 0 or wanted <= room):
        kept += 1
        wanted = sum(min(len(text), LEAST_CHARACTERS) for text in details[:kept + 1])
    left = f"\n-- {len(details) - kept} more in results.json" if kept < len(details) else ""
    return head + "".join(text.rstrip() for text in fit(details[:kept], room)) + left


def text(results, most=11500):
    """Empty if nothing failed."""
    failed = {name: part for name, part in results.parts.items() if part["verdict"] == "failed"}
    if not failed:
        return ""
    head = f"FAILED: {', '.join(failed)}, on {results.facts.get('GPU', 'a GPU not seen')}"
    whole = {name: of_part(name, part, 100 * most) for name, part in failed.items()}
    room, shares = most - len(head), {}
    by_length = sorted(whole, key=lambda name: len(whole[name]))
    for left, name in zip(range(len(whole), 0, -1), by_length):
        shares[name] = min(room // left, len(whole[name]))
        room -= shares[name]
    return "\n".join([head] + [of_part(name, part, shares[name]) for name, part in failed.items()])
