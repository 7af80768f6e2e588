// Ranks a page or section whose title is the query first; Sphinx ranks it like a title that contains one of the words. The other numbers are Sphinx's.
var Scorer = {
  score: ([, title, , , score]) => {
    const query = (new URLSearchParams(window.location.search).get("q") || "").trim().toLowerCase();
    const heading = title.split(" > ").pop().replace(/<[^>]*>/g, "").trim().toLowerCase();
    return heading === query ? score + 100 : score;
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
