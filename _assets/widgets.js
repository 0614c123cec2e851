/* What the vendored widget code lacks on these pages. */
(function () {
  "use strict";

  // 1. It asks MathJax 2 to set labels, and these pages have MathJax 3: without this the asking is an error.
  function answerAsMathJax2() {
    if (!window.MathJax || window.MathJax.Hub) return;
    window.MathJax.Hub = {
      Queue: function (command) {
        const element = command[2];
        const ready = window.MathJax.startup && window.MathJax.startup.promise;
        if (ready && element) ready.then(function () { return window.MathJax.typesetPromise([element]); });
      },
    };
  }

  // 2. Names for screen readers: slider handles and play buttons are drawn without any.
  const playNames = { "fa-play": "play", "fa-pause": "pause", "fa-stop": "stop", "fa-repeat": "repeat", "fa-retweet": "repeat" };

  function name() {
    document.querySelectorAll(".widget-hslider, .widget-vslider").forEach(function (slider) {
      const label = slider.querySelector(".widget-label");
      slider.querySelectorAll(".noUi-handle").forEach(function (handle) {
        if (label && label.textContent) handle.setAttribute("aria-label", label.textContent.trim());
      });
    });
    document.querySelectorAll(".widget-play button").forEach(function (button) {
      const icon = button.querySelector("i, svg");
      if (button.hasAttribute("aria-label") || !icon) return;
      const known = Object.keys(playNames).find(function (key) { return icon.classList.contains(key); });
      button.setAttribute("aria-label", known ? playNames[known] : button.title || "play");
    });
  }

  function start() {
    answerAsMathJax2();     // every deferred script has run by now, and widgets are drawn after the page has loaded
    name();
    new MutationObserver(name).observe(document.body, { childList: true, subtree: true });
  }
  if (document.readyState === "complete") start();
  else document.addEventListener("DOMContentLoaded", start);
})();
