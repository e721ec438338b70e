// What scrolls sideways can be reached by keyboard.
const reachable = () => {
  for (const each of document.querySelectorAll(".md-typeset__scrollwrap")) {
    each.tabIndex = each.scrollWidth > each.clientWidth ? 0 : -1;
  }
};
document$.subscribe(() => requestAnimationFrame(reachable));
addEventListener("resize", reachable);
