#include "tools/picture/inks.h"

#include <weir/verdict.h>

typedef struct shade {
    const char *light, *dark;
} shade;

/* Distinct for all kinds of colour vision (Okabe and Ito, 2008); dashes distinguish more curves. */
static const shade curves[NUM_CURVE_COLOURS] = {
    { "#0072b2", "#4db2ec" }, { "#d55e00", "#ff8a3d" }, { "#009e73", "#2fc79a" }, { "#cc79a7", "#e39ac4" },
    { "#56b4e9", "#9fdcff" }, { "#b27c00", "#e9b03c" }, { "#000000", "#ffffff" },
};

_Static_assert(WEIR_NUM_VERDICTS == 11, "each limit has a shade of its own: add one here");

static const shade fills[INK_LIMITS + WEIR_NUM_VERDICTS] = {
    [INK_BUSY] = { "#0072b2", "#3f9bd8" },
    [INK_BUSY_ELSEWHERE] = { "#9ecae1", "#24587c" },
    [INK_INPUT] = { "#dcdcdc", "#3a3e46" },
    [INK_THREAD] = { "#d55e00", "#ff8a3d" },
    [INK_TURN] = { "#cc79a7", "#e39ac4" },
    [INK_ROOM] = { "#f0e442", "#d4c832" },
    [INK_THROTTLED] = { "#000000", "#ffffff" },
    [INK_STOLEN] = { "#cc79a7", "#e39ac4" },
    [INK_OTHERS] = { "#d55e00", "#ff8a3d" },
    [INK_IDLE] = { "#dcdcdc", "#3a3e46" },
    [INK_EMPTY] = { "#ececec", "#2b2f36" },
    [INK_FULL] = { "#083c78", "#8fc6ff" },
    [INK_PHASES] = { "#e4eaf2", "#232b38" },
    [INK_PHASES + 1] = { "#f7ecd9", "#37301f" },
    [INK_PHASES + 2] = { "#e2f0e4", "#20331f" },
    [INK_PHASES + 3] = { "#f3e3ee", "#38233a" },
    [INK_PHASES + 4] = { "#dcf1f5", "#1c3a3f" },
    [INK_LIMITS + WEIR_VERDICT_UNKNOWN] = { "#d9d9d9", "#4a4e56" },
    [INK_LIMITS + WEIR_VERDICT_NONE] = { "#009e73", "#2fc79a" },
    [INK_LIMITS + WEIR_VERDICT_CONSUMER] = { "#56b4e9", "#9fdcff" },
    [INK_LIMITS + WEIR_VERDICT_SOURCE] = { "#cc79a7", "#e39ac4" },
    [INK_LIMITS + WEIR_VERDICT_SLOTS] = { "#0072b2", "#3f9bd8" },
    [INK_LIMITS + WEIR_VERDICT_OUTSIDE] = { "#e69f00", "#e9b03c" },
    [INK_LIMITS + WEIR_VERDICT_THREADS] = { "#d55e00", "#ff8a3d" },
    [INK_LIMITS + WEIR_VERDICT_CPUS] = { "#a02020", "#e06a6a" },
    [INK_LIMITS + WEIR_VERDICT_ORDER] = { "#7f5ab6", "#b393e8" },
    [INK_LIMITS + WEIR_VERDICT_QUEUE] = { "#c8b400", "#d4c832" },
    [INK_LIMITS + WEIR_VERDICT_FAILURES] = { "#000000", "#ffffff" },
};
enum { NUM_FILLS = sizeof fills / sizeof fills[0] };

static const char shapes[] = ".weir text{font:12px sans-serif}.weir .h{font-weight:bold}.weir .n{font-size:11px}"
                             ".weir .g,.weir .e{stroke-width:1;fill:none}.weir .e{stroke-dasharray:2 3}"
                             ".weir .c{fill:none;stroke-width:1.6;stroke-linejoin:round}"
                             ".weir .b{stroke:none;fill-opacity:.22}"
                             ".weir .p{fill:#808080;fill-opacity:.35}.weir .o{fill-opacity:.13}"
                             ".weir .m{fill:none;stroke-width:1.5;stroke-dasharray:6 4}.d1{stroke-dasharray:7 3}"
                             ".d2{stroke-dasharray:2 2}";

static void put_shades(FILE *out, bool is_dark)
{
    const char *text = is_dark ? "#e0e0e0" : "#222", *soft = is_dark ? "#a8adb6" : "#5a5a5a",
               *line = is_dark ? "#3c414a" : "#dadada";
    fprintf(out,
            ".weir text{fill:%s}.weir .n{fill:%s}.weir .g{stroke:%s}.weir .e{stroke:%s}.weir .m{stroke:%s}"
            ".weir .z{fill:%s}",
            text, soft, line, soft, text, is_dark ? "#16181c" : "#ffffff");
    for (int i = 0; i < NUM_CURVE_COLOURS; i++) {
        const char *colour = is_dark ? curves[i].dark : curves[i].light;
        fprintf(out, ".c%d{stroke:%s}.b%d{fill:%s}.k%d{color:%s}", i, colour, i, colour, i, colour);
    }
    for (int i = 0; i < NUM_FILLS; i++)
        fprintf(out, ".i%d{fill:%s}", i, is_dark ? fills[i].dark : fills[i].light);
}

void inks_write_style(FILE *out)
{
    fputs(shapes, out);
    put_shades(out, false);
    fputs("@media(prefers-color-scheme:dark){", out);
    put_shades(out, true);
    fputs("}", out);
}

void inks_write_page_style(FILE *out)
{
    fputs(
        ":root{color-scheme:light dark;--text:#1d1d1f;--back:#fff;--line:#ddd;--soft:#f5f5f5;--warn:#d55e00}"
        "@media(prefers-color-scheme:dark){:root{--text:#e6e6e6;--back:#16181c;--line:#3a3d44;--soft:#22252b;"
        "--warn:#ff9a52}}"
        "body{font:15px/1.5 system-ui,sans-serif;margin:1.5em auto;max-width:1152px;padding:0 1em;color:var(--text);"
        "background:var(--back)}"
        ".tip{position:fixed;pointer-events:none;white-space:pre;font:12px/1.4 sans-serif;padding:.4em .7em;"
        "background:var(--soft);color:var(--text);border:1px solid var(--line);border-radius:4px;z-index:9;"
        "max-width:92vw;overflow:hidden;text-overflow:ellipsis}.weir{display:block}",
        out);
    inks_write_style(out);
}

/*
 * A group with data-x has axes: the pixels and the values of both ends of the time, then of the values. A path of the class
 * "c" is a curve; those of the class "a" are layers, each behind the one below it.
 */
const char inks_script[] =
    "(()=>{const tip=document.createElement('div');tip.className='tip';tip.hidden=true;document.body.append(tip);\n"
    "const known=new Map(),vertices=p=>{if(known.has(p))return known.get(p);const all=[];let x=0,y=0;\n"
    "for(const[,k,v]of p.getAttribute('d').matchAll(/([MLHVZ])([^MLHVZ]*)/g)){const n=v.trim().split(/[ "
    ",]+/).map(Number);\n"
    "if(k==='Z'){all.push(null);continue}if(k==='H')x=n[0];else "
    "if(k==='V')y=n[0];else{x=n[0];y=n[1];if(k==='M')all.push(null)}\n"
    "all.push([x,y])}known.set(p,all);return all};\n"
    "const level=(p,x,foot)=>{let found=null,before=null;for(const v of vertices(p)){if(!v){before=null;continue}\n"
    "if(before&&before[0]<=x&&x<=v[0]&&v[0]>before[0])found=x-before[0]<v[0]-x?before[1]:v[1];before=v}return "
    "found===null?foot:found};\n"
    "const text=(v,u)=>{if(v===null)return'no value';const a=Math.abs(v),three=n=>String(+n.toPrecision(3));\n"
    "if(u==='s')return a>=1||!a?three(v)+' s':a>=1e-3?three(v*1e3)+' ms':a>=1e-6?three(v*1e6)+' us':three(v*1e9)+' "
    "ns';\n"
    "if(u==='share')return three(v*100)+' %';if(u.startsWith('bytes')){const r=u.slice(5);for(const[s,n]of[[1e9,' "
    "GB'],[1e6,' MB'],\n"
    "[1e3,' kB']])if(a>=s)return three(v/s)+n+r;return three(v)+' bytes'+r}return three(v)};\n"
    "const show=e=>{const g=e.target.closest&&e.target.closest('.weir [data-x]');if(!g){tip.hidden=true;return}\n"
    "const m=g.getScreenCTM();if(!m)return;const at=new DOMPoint(e.clientX,e.clientY).matrixTransform(m.inverse());\n"
    "const[x0,x1,t0,t1,y0,y1,v0,v1,log]=g.dataset.x.split(' "
    "').map(Number),x=Math.min(x1,Math.max(x0,at.x)),u=g.dataset.u;\n"
    "const value=y=>{const q=(y-y0)/(y1-y0);return log?v0*Math.pow(v1/v0,q):v0+q*(v1-v0)};\n"
    "const lines=[(+(t0+(x-x0)/(x1-x0)*(t1-t0)).toPrecision(4))+' '+g.dataset.t];\n"
    "for(const p of g.querySelectorAll('path.c')){const y=level(p,x,null);if(y!==null)lines.push(p.dataset.n+': "
    "'+text(value(y),u))}\n"
    "let below=y0;for(const p of[...g.querySelectorAll('path.a')].reverse()){const "
    "y=level(p,x,null);if(y===null)continue;\n"
    "const v=value(y)-value(below);if(v>1e-3*(v1-v0))lines.push(p.dataset.n+': '+text(v,u));below=y}\n"
    "tip.textContent=lines.join('\\n');tip.hidden=lines.length<2;const w=tip.offsetWidth,h=tip.offsetHeight;\n"
    "tip.style.left=Math.max(4,Math.min(e.clientX+14,innerWidth-w-4))+'px';\n"
    "tip.style.top=Math.max(4,e.clientY+18+h>innerHeight?e.clientY-h-12:e.clientY+18)+'px'};\n"
    "addEventListener('pointermove',show);addEventListener('pointerdown',show)})();";
