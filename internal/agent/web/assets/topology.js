"use strict";
sp.every(10000, () => sp.refresh("topology"));
