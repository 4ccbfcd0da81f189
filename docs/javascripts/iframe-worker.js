// Browsers start no worker from a file. Where the pages are read as files, their search runs in a hidden frame instead;
// a page that a server gives uses the browser's own workers.
if (location.protocol === "file:") {
    window.Worker = class extends EventTarget {
        #frame = document.createElement("iframe");
        #waiting = [];

        constructor(address) {
            super();
            this.#frame.hidden = true;
            document.documentElement.append(this.#frame);
            const inside = this.#frame.contentWindow;
            // A frame that was just added may be emptied once more, unless something is written into it.
            inside.document.open();
            inside.document.write("<!doctype html><title>search</title>");
            inside.document.close();
            inside.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
            const script = inside.document.createElement("script");
            script.src = new URL(address, document.baseURI).href;
            script.onload = () => {
                const waiting = this.#waiting;
                this.#waiting = null;
                waiting.forEach((data) => this.postMessage(data));
            };
            inside.document.head.append(script);
        }

        postMessage(data) {
            if (this.#waiting) {
                this.#waiting.push(data);
            } else {
                this.#frame.contentWindow.dispatchEvent(new MessageEvent("message", { data }));
            }
        }

        terminate() {
            this.#frame.remove();
        }
    };
}
