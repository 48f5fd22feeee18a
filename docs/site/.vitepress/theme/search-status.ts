/**
 * Says in the search box that its index is loading. The theme loads it as the box opens, and says nothing meanwhile: nothing would be found,
 * and nobody would know why.
 */
// By locale, what loads its index. The search box asks the same, so it is loaded once.
import indexes from "@localSearchIndex";

/** Says it in each search box that opens. */
export function sayWhileLoading(): void {
  new MutationObserver((changes) => {
    for (const node of changes.flatMap(({ addedNodes }) => [...addedNodes])) {
      if (node instanceof Element && node.matches(".VPLocalSearchBox")) void sayIn(node);
    }
  }).observe(document.body, { childList: true });
}

async function sayIn(box: Element): Promise<void> {
  const said = document.createElement("p");
  said.className = "search-status";
  said.setAttribute("role", "status");
  said.textContent = "The index of the search is loading…";
  box.querySelector(".results")?.before(said);
  try {
    await indexes["root"]!();
    said.textContent = "";
  } catch {
    said.textContent = "The index of the search could not be loaded. Load the page again.";
  }
}
