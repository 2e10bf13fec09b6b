// Search without a server: browsers start no worker on file://, so a hidden frame stands for one.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.body.appendChild(Object.assign(document.createElement("iframe"), { hidden: true }));
      const inside = frame.contentWindow;
      this.loaded = new Promise((resolve) => frame.addEventListener("load", resolve));
      window.addEventListener("message", (event) => {
        if (event.source !== inside) return;
        const message = new MessageEvent("message", { data: event.data });
        this.dispatchEvent(message);
        this.onmessage?.(message);
      });
      inside.document.open();
      inside.document.write(`<script>
        postMessage = (data) => parent.postMessage(data, "*");
        importScripts = async (...urls) => {
          for (const src of urls)
            await new Promise((onload) => document.body.append(Object.assign(document.createElement("script"), { src, onload })));
        };
      <\/script><body><script src="${url}"><\/script></body>`);
      inside.document.close();
      this.frame = frame;
    }
    postMessage(data) {
      this.loaded.then(() => this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data: structuredClone(data) })));
    }
    terminate() {
      this.frame.remove();
    }
  };
}
