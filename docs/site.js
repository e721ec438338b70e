// What scrolls sideways can be reached by keyboard.
const reachable = () => {
  for (const each of document.querySelectorAll(".md-typeset__scrollwrap")) {
    each.tabIndex = each.scrollWidth > each.clientWidth ? 0 : -1;
  }
};
document$.subscribe(() => requestAnimationFrame(reachable));
addEventListener("resize", reachable);

// A pasted message is words to the search: its marks would be operators, and a single digit with them an error.
const post = Worker.prototype.postMessage;
Worker.prototype.postMessage = function (message, ...rest) {
  const words = text => text.replace(/[^\p{L}\p{N}_.+]+/gu, " ").replace(/(?<=^| )\S(?= |$)/g, "").replace(/(?<=^| )[+.]+|[.]+(?= |$)/g, "");
  return post.call(this, message.type === 2 ? { ...message, data: words(message.data) } : message, ...rest);
};
