"""The words by which the mock API judges a text about a product or a service.

Written for this project. Valences go from -4 (very bad) to 4 (very good). Other forms of a word (``loved``,
``crashes``, ``poorly``) are found by their stem; a form with a meaning of its own has its own entry.
"""

from __future__ import annotations

_BY_VALENCE: dict[float, str] = {
    3.6: "outstanding superb magnificent phenomenal flawless masterpiece",
    3.2: "amazing awesome brilliant excellent fantastic incredible perfect spectacular stunning terrific wonderful "
    "marvelous exceptional perfection unbeatable",
    2.8: "adore best beautiful delight fabulous gorgeous great ideal impressive love superior thrilled delighted "
    "lovely delightful exquisite must-have",
    2.4: "elegant enjoy excited gem glad happy impress joy pleasure recommend remarkable treasure winner wow "
    "stylish charming favorite favourite bonus sleek best-in-class",
    2.0: "awe breeze charm cool crisp durable easy effortless enthusiastic fast fun genius good handy helpful "
    "intuitive neat nice pleasant pleased powerful reliable satisfied sharp smart solid sturdy vivid "
    "well-made worthwhile easily enjoyable innovative friendly generous magic rich flexible versatile stable thank "
    "thanks ease",
    1.6: "accurate affordable appreciate attractive bargain clean clear clever comfortable complement convenient "
    "cute efficient gain gentle improve improvement lightweight quick quiet safe simple smooth strong success "
    "useful valuable value worth warm responsive advantage bright consistent precise portable faster",
    1.2: "adequate benefit capable decent fair fit free fresh hope interesting like pro plus proud ready fine "
    "better well compact secure sensible sweet upgrade win works worked satisfactory surprisingly nicely",
    0.6: "acceptable able light quality balanced correct enough new okay ok reasonable reasonably work suitable "
    "sufficient standard",
    -0.6: "average hard limited long mediocre wait wonder worn miss old only loose basic lack lacking tight bulky "
    "heavy dim pricey cheaper supposedly supposed",
    -1.2: "annoyance beware blurry bother bug clumsy complain complaint con concern confuse confusing costly "
    "cumbersome delay difficult dull expensive faint glitch grainy hassle inconvenient irritate limit loud "
    "noise noisy odd overpriced problem regret scratch slow slower stiff stuck tricky ugly uncomfortable "
    "unclear warn weak weird wrong cheap down drawback flaw issue lose lost mistake trouble unfortunately "
    "sorry sad doubt unable",
    -1.8: "annoy annoying angry bad break broke broken crack crappy crash damage dead defect disappoint error fail "
    "failure faulty flimsy freeze frozen frustrate frustrating hurt impossible inferior lie lousy malfunction "
    "mess misleading negative poor refund reject return rude sloppy stupid stopped suffer unhappy unreliable "
    "unusable unstable leak die died dies inaccurate skip disappointing disappointment incompatible burn "
    "worse refuse ridiculous inadequate terribly",
    -2.4: "avoid awful catastrophe crap defective dreadful fraud hate junk lemon nightmare pathetic rip-off ripoff "
    "ruin scam suck terrible trash useless waste hell disgusted furious insult unacceptable worthless",
    -3.2: "abysmal atrocious appalling disaster disgrace disgusting garbage hideous horrible horrid horrendous "
    "loathe worst abomination",
}

_BY_FACTOR: dict[float, str] = {
    1.6: "absolutely amazingly completely exceptionally extremely incredibly insanely totally utterly",
    1.3: "deeply especially extra highly most really remarkably seriously so super too truly very",
    0.8: "fairly just mostly pretty quite rather relatively",
    0.6: "almost bit kinda little occasionally partly slightly somewhat sometimes",
}

_NEGATIONS = (
    "ain't aint barely can't cannot cant couldn't didn't didnt doesn't doesnt don't dont hadn't hardly hasn't "
    "haven't isn't isnt neither never no nobody none nor not nothing scarcely shouldn't wasn't weren't without won't "
    "wont wouldn't"
)


def _by_word(table: dict[float, str]) -> dict[str, float]:
    return {word: number for number, words in table.items() for word in words.split()}


VALENCES: dict[str, float] = _by_word(_BY_VALENCE)
"""The valence of a word, from -4 to 4."""

INTENSIFIERS: dict[str, float] = _by_word(_BY_FACTOR)
"""The factor by which a word multiplies the valence of the next one."""

NEGATIONS: frozenset[str] = frozenset(_NEGATIONS.split())
"""Words that reverse the valence of the words after them."""
